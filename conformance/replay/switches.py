"""Hooks on the engine's own switches: what a case's words mean for `twodoor serve`."""

import hashlib
import json
import re
import secrets

from . import server


class CannotDo(Exception):
    """The engine, or this machine, lacks what the case needs: a failure, never a pass."""


def configure(play, wanted):
    """Does what a `config` step asks for; called before the server starts."""
    for pattern, apply in CONFIGURED:
        if found := re.fullmatch(pattern, wanted):
            apply(play, found)
            return
    raise CannotDo(f"no switch for the configuration {wanted!r}")


def option(play, name, value):
    """Adds an option of `serve`, if this build has it."""
    if not re.search(rf"(?m)^\s+{name}\b", server.help_of(play.binary, "serve")):
        raise CannotDo(f"`serve` has no option {name}")
    play.options += [name, value]


def _cross_origin(play, found):
    option(play, "--allow-origin", found[1])


def _session_idle(play, found):
    option(play, "--session-idle", f"{found[1]}s")


def _auth(play, scopes):
    """Serves callers with tokens: GOOD has every scope, each of `scopes` those that it names."""
    tokens = {"GOOD": ["use"], **scopes}
    lines = []
    for name, scopes in tokens.items():
        token = secrets.token_urlsafe(32)
        play.variables[name] = token
        lines.append({"name": name.lower(), "sha256": hashlib.sha256(token.encode()).hexdigest(), "scopes": scopes})
    file = play.folder / "auth.json"
    file.write_text(json.dumps({"authorization_servers": ["https://auth.example.org"], "tokens": lines}))
    file.chmod(0o600)
    option(play, "--auth", str(file))


def _auth_enabled(play, _):
    _auth(play, {})


def _scope_lacking(play, found):
    _auth(play, {found[1]: ["other"]})
    tools = [tool for tool in play.fixture.tools if tool["name"] == found[2]]
    if not tools:
        raise CannotDo(f"the fixture has no tool {found[2]}")
    # A copy: tools are shared between cases.
    play.fixture.tools[play.fixture.tools.index(tools[0])] = {**tools[0], "scopes": ["use"]}


# Asks once, and says what was answered: a tool that talks is run again with the answer.
ASKS = (
    'printf \'%s\\n\' \'{"ask":"name","message":"Who are you?","schema":'
    '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}\' >&3\n'
    "read -r answer <&3\n"
    'printf "%s" "$answer"\n'
)


def _asks(play, found):
    play.fixture.add({"name": found[1], "inputSchema": {"type": "object"}, "argv": ["sh", "-c", ASKS], "talk": True})


CONFIGURED = [
    (r"auth enabled", _auth_enabled),
    (r"auth enabled; token (\w+) lacks the scope of (\S+)", _scope_lacking),
    (r"tool (\S+) asks its caller for form input \(elicitation\)", _asks),
    (r"CORS enabled for (\S+)", _cross_origin),
    (r"legacy session idle limit (\d+) s", _session_idle),
]


# A client that can follow tasks, for the one call that fills the store.
FOLLOWS_TASKS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}


def make_a_task(play):
    """Has the server keep a task, so that its store holds a record."""
    params = {"name": "kept", "arguments": {}, "_meta": FOLLOWS_TASKS}
    play.emit(json.dumps({"jsonrpc": "2.0", "id": "kept", "method": "tools/call", "params": params}).encode() + b"\n")
    if not play.wait(lambda: play.replies("kept"), 5000) or "result" not in play.replies("kept")[0]:
        raise CannotDo("no task was made, so nothing was stored")


def write_state(play, content):
    """Lets a server make its store, then puts `content` in place of every file of it."""
    store = play.folder / "store"
    option(play, "--state", str(store))
    play.fixture.add({"name": "kept", "inputSchema": {"type": "object"}, "argv": ["true"], "task": "required"})
    make_a_task(play)
    play.engine().stop()
    play.set_aside()
    files = [path for path in store.rglob("*") if path.is_file()]
    if not files:
        raise CannotDo("`serve --state` made no file that could be damaged")
    for path in files:
        path.write_text(content)
    # The next step that needs a server starts one on the damaged store.
    play.server = None
    return {"files": files, "content": content.encode(), "store": store}


def copies(state):
    """Files of the store that still hold what was put there."""
    return [path for path in state["store"].rglob("*") if path.is_file() and path.read_bytes() == state["content"]]
