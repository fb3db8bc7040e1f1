"""Runs mcp-assert, the Inspector and fastmcp against the example surfaces, and judges what they print.

check.py TWODOOR PYTHON-BIN NODE INSPECTOR-PACKAGE

One line a run, and last `N passed, M failed`. Exit 1 if a run failed.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TWODOOR, PYTHON, NODE, PACKAGE = map(Path, sys.argv[1:])
INSPECTOR = [str(NODE), str(PACKAGE / "clients/launcher/build/index.js"), "--cli", "--format", "json", "-q"]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Of each surface one call that succeeds, and a piece of what it says.
CALLS = {
    "disk": ("measure", {"text": "a b"}, '{"lines":1,"words":2,"bytes":4}'),
    "git": ("files", {}, "examples/disk.yaml"),
    "notes": ("search", {"text": "Notes"}, "welcome.md"),
    "talk": ("tidy", {}, "No backup files"),
}
# Of the surface that has them: what is listed, and a piece of what is read.
NOTES = sorted(file.relative_to(EXAMPLES / "notes").as_posix() for file in (EXAMPLES / "notes").rglob("*.md"))
RESOURCES = {"notes": ["notes:///welcome", *(f"notes:all/{note}" for note in NOTES), "notes:///count"]}
PROMPTS = {"notes": ["review", "plan"]}
READ, PROMPT = ("notes:///welcome", "# "), ("plan", "Read the latest notes")
# `arguments: null` is no object in any revision's schema, and -32602 is the answer to it. mcp-assert counts every
# JSON-RPC error that it did not foresee as a crash.
KNOWN = ("null args", "params.arguments must be an object")
AT_MOST = 300
FUZZ_RUNS, SEED = "50", "42"


class Bad(Exception):
    """Why a run failed."""


def run(command, expected=0):
    """What a tool prints, as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=AT_MOST, stdin=subprocess.DEVNULL)
    if done.returncode != expected:
        raise Bad(f"exit code {done.returncode}, expected {expected}: {(done.stdout + done.stderr).strip()[-600:]}")
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Bad(f"no JSON: {done.stdout[-300:]!r} {done.stderr[-300:]!r}") from None


def digest(tools):
    text = json.dumps(tools, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class Surface:
    """One example, as a tool reaches it."""

    def __init__(self, file, work):
        self.file, self.name = file, file.stem
        # The names as a person reads them in the file, and the digest as an operator would pin it.
        written = file.read_text().split("\ntools:\n", 1)[1].split("\nresources:", 1)[0]
        self.names = re.findall(r"^  ([a-z_]+):$", written, re.MULTILINE)
        printed = subprocess.run([TWODOOR, "digest", file], capture_output=True, text=True, check=True).stdout
        self.digest = printed.split()[0]
        self.log = work / f"{self.name}.log"
        self.script = work / f"serve-{self.name}"
        # Not by exec: the script says how the server ended.
        serve = f"'{TWODOOR}' serve '{file}' 2>>'{self.log}'"
        self.script.write_text(f"#!/bin/sh\n{serve}\necho \"exit $?\" >>'{self.log}'\n")
        self.script.chmod(0o755)
        self.definitions = None

    def __enter__(self):
        with self.log.open("ab") as log:
            self.server = subprocess.Popen([TWODOOR, "serve", self.file, "--http", "127.0.0.1:0"], stderr=log)
        for _ in range(200):
            if found := re.search(r"listening on (http\S+)", self.log.read_text()):
                self.url = found[1]
                return self
            time.sleep(0.05)
        self.server.kill()
        raise Bad(f"the server announced no address: {self.log.read_text()}")

    def __exit__(self, *raised):
        self.server.terminate()
        self.server.wait(timeout=30)

    def sound(self):
        """The server is there, and none that was started over stdio ended badly."""
        if self.server.poll() is not None:
            raise Bad(f"the HTTP server ended with {self.server.returncode}")
        said = self.log.read_text(errors="replace")
        if bad := re.search(r"^exit [^0\n].*|.*panicked at.*|.*\bincident\b.*", said, re.MULTILINE):
            raise Bad(f"the server said {bad[0]!r}")

    def listed(self, tools, whole):
        same([tool["name"] for tool in tools], self.names)
        if whole:
            same(digest(tools), self.digest)
            self.definitions = tools


def same(got, expected):
    if got != expected:
        raise Bad(f"got {got}, expected {expected}")


def holds(text, expected):
    if expected not in text:
        raise Bad(f"got {text[:300]!r}, expected {expected!r} in it")


def called(result, expected):
    text = "".join(piece.get("text", "") for piece in result["content"])
    if result.get("isError") or result.get("is_error"):
        raise Bad(f"the call failed: {text[:300]!r}")
    holds(text, expected)


def inspect(surface, transport, era):
    target = [str(surface.script)] if transport == "stdio" else ["--server-url", surface.url, "--transport", "http"]
    base = [*INSPECTOR, "--protocol-era", era]
    # --strict is its lint of schemas: exit code 6 on an error.
    surface.listed(run([*base, "--method", "tools/list", "--strict", *target])["result"]["tools"], whole=True)
    tool, arguments, expected = CALLS[surface.name]
    given = [part for name, value in arguments.items() for part in ("--tool-arg", f"{name}={value}")]
    # The arguments last: they would take the target for one of them.
    result = run([*base, *target, "--method", "tools/call", "--tool-name", tool, *given])["result"]
    called(result, expected)
    # Only a modern result says who answers.
    modern = "io.modelcontextprotocol/serverInfo" in result.get("_meta", {})
    if modern != (era != "legacy"):
        raise Bad(f"it spoke {'modern' if modern else 'legacy'}")
    told = f"{len(surface.names)} tools, their digest, {tool}"
    if surface.name not in RESOURCES:
        return told

    def ask(*method):
        return run([*base, *target, "--method", *method])["result"]

    same([resource["uri"] for resource in ask("resources/list")["resources"]], RESOURCES[surface.name])
    same([prompt["name"] for prompt in ask("prompts/list")["prompts"]], PROMPTS[surface.name])
    holds(ask("resources/read", "--uri", READ[0])["contents"][0]["text"], READ[1])
    holds(ask("prompts/get", "--prompt-name", PROMPT[0])["messages"][0]["content"]["text"], PROMPT[1])
    return f"{told}, {len(RESOURCES[surface.name])} resources, {len(PROMPTS[surface.name])} prompts"


def fastmcp(surface, transport):
    target = ["--command", str(surface.script)] if transport == "stdio" else [surface.url]
    command = str(PYTHON / "fastmcp")
    tools = run([command, "list", *target, "--json"])["tools"]
    surface.listed(tools, whole=False)
    # It prints these members of a definition alone.
    printed = ("name", "description", "inputSchema", "outputSchema")
    same(tools, [{key: tool[key] for key in printed if key in tool} for tool in surface.definitions])
    tool, arguments, expected = CALLS[surface.name]
    call = [command, "call", *target, "--target", tool, "--input-json", json.dumps(arguments), "--json"]
    called(run(call), expected)
    missing = subprocess.run([command, "call", *target, "--target", "no_such_tool"], capture_output=True, text=True)
    if missing.returncode != 1 or "no_such_tool not found" not in missing.stdout + missing.stderr:
        raise Bad(f"a tool that is not there: exit code {missing.returncode}, {missing.stderr[-300:]!r}")
    told = f"{len(tools)} tools, {tool}, a missing tool"
    if surface.name in RESOURCES:
        listed = run([command, "list", *target, "--resources", "--prompts", "--json"])
        same([resource["uri"] for resource in listed["resources"]], RESOURCES[surface.name])
        same([prompt["name"] for prompt in listed["prompts"]], PROMPTS[surface.name])
        holds(json.dumps(run([command, "call", *target, "--target", READ[0], "--json"])), READ[1])
        holds(json.dumps(run([command, "call", *target, "--target", PROMPT[0], "--prompt", "--json"])), PROMPT[1])
    return told


def asserting(surface, transport, command, *options):
    target = str(surface.script) if transport == "stdio" else surface.url
    return [str(PYTHON / "mcp-assert"), command, "--server", target, "--transport", transport, "--json", *options]


def audit(surface, transport):
    report = run(asserting(surface, transport, "audit"))
    surface.listed([{"name": result["tool"]} for result in report["results"]], whole=False)
    statuses = [result["status"] for result in report["results"]]
    # A tool that may write is not called.
    if unwell := [result for result in report["results"] if result["status"] not in ("healthy", "skipped")]:
        raise Bad(json.dumps(unwell))
    if "healthy" not in statuses:
        raise Bad("no tool was called")
    return f"{statuses.count('healthy')} healthy, {statuses.count('skipped')} not called"


def fuzz(surface, transport):
    report = run(asserting(surface, transport, "fuzz", "--runs", FUZZ_RUNS, "--seed", SEED), expected=1)
    surface.listed([{"name": tool["tool"]} for tool in report["tools"]], whole=False)
    failures = [failure for tool in report["tools"] for failure in tool["failures"] or []]
    known = [f for f in failures if f["label"] == KNOWN[0] and KNOWN[1] in f["detail"]]
    if unknown := [failure for failure in failures if failure not in known]:
        raise Bad(json.dumps(unknown))
    if len(known) != len(surface.names):
        raise Bad(f"{len(known)} of the known finding, expected one a tool")
    return f"{report['summary']['total_runs']} inputs, {len(known)} refused as they have to be"


RUNS = [
    ("inspector legacy", lambda surface, transport: inspect(surface, transport, "legacy")),
    ("inspector auto", lambda surface, transport: inspect(surface, transport, "auto")),
    ("inspector modern", lambda surface, transport: inspect(surface, transport, "modern")),
    ("fastmcp", fastmcp),
    ("mcp-assert audit", audit),
    ("mcp-assert fuzz", fuzz),
]


def prepare(work):
    """The examples in a repository of their own, since git.yaml reads its repository and the fuzzer calls all."""
    os.environ.update(HOME=str(work), FASTMCP_CHECK_FOR_UPDATES="off", NO_COLOR="1")
    repository = work / "repository"
    shutil.copytree(EXAMPLES, repository / "examples")
    identity = ["-c", "user.name=tools", "-c", "user.email=tools@example.com"]
    for step in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "examples"]):
        subprocess.run(["git", "-C", str(repository), *step], check=True)
    return sorted((repository / "examples").glob("*.yaml"))


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as work:
        for file in prepare(Path(work)):
            with Surface(file, Path(work)) as surface:
                for transport in ("stdio", "http"):
                    for name, act in RUNS:
                        began = time.monotonic()
                        try:
                            told = act(surface, transport)
                            surface.sound()
                            passed, verdict = passed + 1, "ok"
                        except (Bad, KeyError, TypeError, subprocess.TimeoutExpired) as problem:
                            told, failed, verdict = f"{type(problem).__name__}: {problem}", failed + 1, "FAILED"
                        took = f"{time.monotonic() - began:5.1f} s"
                        print(f"{verdict:6}  {surface.name:5}  {transport:5}  {name:16}  {took}  {told}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
