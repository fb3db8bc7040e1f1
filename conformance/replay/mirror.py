"""The headers with which a client of a message's era posts it."""

import base64
import json

from . import wire

CLAIM = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
PLAIN = [
    ("content-type", b"application/json"),
    ("accept", b"application/json, text/event-stream"),
]
# What `Mcp-Name` repeats of the body (2026-07-28 transports/streamable-http).
NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def headers(message, session, revision, schemas):
    claim = wire.find(message, CLAIM) if isinstance(message, dict) else wire.ABSENT
    if claim is wire.ABSENT:
        legacy = [("mcp-session-id", session), ("mcp-protocol-version", revision if session else None)]
        return PLAIN + [(name, value.encode()) for name, value in legacy if value]
    params = message["params"]
    mirrored = [("mcp-protocol-version", claim), ("mcp-method", message.get("method"))]
    if message.get("method") in NAMED:
        mirrored.append(("mcp-name", params.get(NAMED[message["method"]])))
    if message.get("method") == "tools/call":
        schema, arguments = schemas.get(params.get("name"), {}), params.get("arguments")
        mirrored += [(f"mcp-param-{name}", value) for name, value in _parameters(schema, arguments)]
    return PLAIN + [(name, _encode(value)) for name, value in mirrored if isinstance(value, (str, int, bool))]


def _parameters(schema, arguments):
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for name, inner in properties.items():
        value = arguments.get(name) if isinstance(arguments, dict) else None
        if not isinstance(inner, dict) or value is None:
            continue
        if "x-mcp-header" in inner:
            yield inner["x-mcp-header"], value
        yield from _parameters(inner, value)


def _encode(value):
    text = value if isinstance(value, str) else json.dumps(value)
    visible = all(" " <= c <= "~" for c in text) and text == text.strip()
    if visible and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text.encode()
    return b"=?base64?" + base64.b64encode(text.encode()) + b"?="
