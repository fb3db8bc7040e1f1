"""Checksums of the files beneath a folder, computed as the person wishes. See docs/talking-back.md."""

import hashlib
import json
import os
import pathlib
import socket
import sys

line = socket.socket(fileno=int(os.environ["TWODOOR_FD"])).makefile("rw", encoding="utf-8")


def tell(**said):
    print(json.dumps(said), file=line, flush=True)


def ask(**question):
    """The client's answer; the program ends here if there is none yet, and begins again with it."""
    tell(**question)
    return json.loads(line.readline() or '{"error": "nobody answers"}')


FORM = {
    "type": "object",
    "properties": {
        "algorithm": {"type": "string", "title": "Algorithm", "enum": ["sha256", "sha512", "blake2b"]},
        "hidden": {"type": "boolean", "title": "Hidden files too", "default": False},
    },
    "required": ["algorithm"],
}

reply = ask(ask="how", message="How are the checksums to be computed?", schema=FORM)
if "error" in reply:
    sys.exit(reply["error"])
answer = reply["answer"]
if answer["action"] != "accept":
    print("No checksums: the person did not choose how.")
    sys.exit()
wanted = answer["content"]

folder = pathlib.Path(sys.argv[1])
files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
if not wanted.get("hidden", False):
    files = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]

for number, path in enumerate(files, start=1):
    try:
        with path.open("rb") as file:
            digest = hashlib.new(wanted["algorithm"])
            for chunk in iter(lambda: file.read(1 << 20), b""):
                digest.update(chunk)
        print(f"{digest.hexdigest()}  {path}")
    except OSError as error:
        tell(log="warning", logger="checksums", message=f"{path}: {error.strerror}")
    tell(progress=number, total=len(files), message=str(path))
