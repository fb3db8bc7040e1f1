"""Cases that twodoor decides differently: what is played and expected instead, and why.

Each stands in ARCHITECTURE.md under \"Decisions\" too. `steps` and `expect` replace what the case
says under those keys; `may_be_refused` names fixture tools that a surface may not declare, and
`refused` the rule by which `twodoor check` must refuse each.
"""

DECISIONS = {
    "B062": {
        "reason": "Windows is not served, so there are no .cmd shims: a program in a folder with spaces and beyond "
        "ASCII is found, and each argument arrives byte for byte",
        "fixture": {
            "tools": [
                {
                    "name": "shim",
                    "inputSchema": {
                        "type": "object",
                        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                        "required": ["a", "b"],
                    },
                    "argv": ["./a folder ä/shim", "{a}", "{b}"],
                }
            ],
            "files": {"a folder ä/shim": "#!/bin/sh\nprintf '[%s]' \"$@\"\n"},
        },
        "steps": [
            {"send": {"jsonrpc": "2.0", "id": "h0", "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "replay", "version": "0"}}}},
            {"await_reply": "h0", "timeout_ms": 5000},
            {"send": {"jsonrpc": "2.0", "method": "notifications/initialized"}},
            {"send": {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                "name": "shim", "arguments": {"a": "a&b|c %PATH% \"q\"", "b": "back\\"}}}},
            {"await_reply": 2, "timeout_ms": 5000},
        ],
        "expect": {
            "replies": [{"id": 2, "match": {"/result/content/0/text": "[a&b|c %PATH% \"q\"][back\\]"}}],
        },
    },
    "B100": {
        "reason": "a tool's name is ASCII, so a surface with another is refused; what is left of the case is played",
        "may_be_refused": ["werkzeug_ä"],
        "refused": {"werkzeug_ä": "tool-name"},
    },
    "B121": {
        "reason": "one defective tool refuses the whole surface, and the refusal names it; the rest is played",
        "refused": {"dangling": "schema-valid", "remote": "schema-ref"},
    },
    "B148": {
        "reason": "the order of tools is part of the digest: the list is hashed as delivered",
        "expect": {
            "digest": {"equal": [["a", "d"]], "different": [["a", "b"], ["a", "c"]], "wire_equals_published": True}
        },
    },
    "B151": {
        "reason": "a damaged store of the engine's own is refused with exit code 4 and kept, never overwritten",
        "steps": [{"write_state_file": {"variants": ["", "{", "{\"a\":\"unterminated", "\0\0", "[]", "{\"schema\":999}"]}}],
        "expect": {"state_file": {"refused_with": 4, "corrupt_copy_kept": True}},
    },
}


def decided(case):
    """The case as twodoor decides it, and the decision if there is one."""
    decision = DECISIONS.get(case["id"])
    if decision is None:
        return case, None
    return {**case, **{key: value for key, value in decision.items() if key not in ("reason",)}}, decision
