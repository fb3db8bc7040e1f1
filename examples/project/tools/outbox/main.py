"""Drafts of messages in the folder `outbox`; one JSON object on standard output, whatever happens."""

import argparse
import json
import os
import re
import sys
from pathlib import Path

OUTBOX = Path("outbox")
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?")


class Failed(Exception):
    def __init__(self, code, message, exit_code=1):
        super().__init__(message)
        self.code, self.exit_code = code, exit_code


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failed("usage", message, 2)


def place(name):
    if not NAME.fullmatch(name):
        raise Failed("invalid_argument", "a draft's name is 1 to 64 letters, digits and hyphens", 2)
    return OUTBOX / f"{name}.json"


def draft(name):
    try:
        return json.loads(place(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Failed("not_found", f"there is no draft {name!r}") from None


def list_drafts(_):
    found = sorted(OUTBOX.glob("*.json"))
    return {"drafts": [{"name": path.stem, "subject": json.loads(path.read_text("utf-8"))["subject"]} for path in found]}


def write_draft(arguments):
    path = place(arguments.name)
    try:
        to = json.loads(arguments.to)
    except ValueError:
        to = None
    if not isinstance(to, list) or not to or not all(isinstance(one, str) for one in to):
        raise Failed("invalid_argument", "--to is a JSON list of addresses", 2)
    OUTBOX.mkdir(exist_ok=True)
    message = {"to": to, "subject": arguments.subject, "text": arguments.text}
    path.write_text(json.dumps(message, ensure_ascii=False), encoding="utf-8")
    return {"name": arguments.name, "characters": len(arguments.text)}


def send_draft(arguments):
    message = draft(arguments.name)
    signature = os.environ.get("OUTBOX_SIGNATURE")
    if signature:
        message["text"] += f"\n-- \n{signature}"
    with (OUTBOX / "sent.log").open("a", encoding="utf-8") as log:
        log.write(json.dumps(message, ensure_ascii=False) + "\n")
    place(arguments.name).unlink()
    return {"sent": arguments.name, "to": message["to"]}


def delete_draft(arguments):
    draft(arguments.name)
    place(arguments.name).unlink()
    return {"deleted": arguments.name}


ACTIONS = {
    "list-drafts": (list_drafts, []),
    "write-draft": (write_draft, ["name", "to", "subject", "text"]),
    "send-draft": (send_draft, ["name"]),
    "delete-draft": (delete_draft, ["name"]),
}


def main(argv):
    try:
        if argv and not argv[0].startswith("-") and argv[0] not in ACTIONS:
            raise Failed("usage", f"unknown action {argv[0]!r}; the actions are {', '.join(ACTIONS)}", 2)
        parser = Parser(prog="outbox", allow_abbrev=False)
        actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
        for name, (_, flags) in ACTIONS.items():
            action = actions.add_parser(name, allow_abbrev=False)
            for flag in flags:
                action.add_argument(f"--{flag}", required=True)
        arguments = parser.parse_args(argv)
        print(json.dumps(ACTIONS[arguments.action][0](arguments), ensure_ascii=False))
        return 0
    except Failed as failed:
        print(json.dumps({"error": {"code": failed.code, "message": str(failed), "details": {}}}, ensure_ascii=False))
        return failed.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
