"""Digests: what `twodoor digest` says, and what anybody can recompute from the wire."""

import hashlib
import json

from . import server, wire
from .match import Unknown

MODERN = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "replay", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}


def of_text(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def recompute(tools):
    """The digest of a list as it was delivered, by the sorted-key form of JSON."""
    return of_text(json.dumps(tools, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def of_list(binary, tools_json):
    """What `twodoor digest` says of the text of a tools array."""
    said = server.run(binary, "digest", "--list", "-", text=tools_json)
    if said.returncode != 0:
        raise Unknown(f"`digest --list -` failed with exit code {said.returncode}: {said.stderr.strip()[:300]}")
    return said.stdout.split()[0]


def compare_wire(play):
    """What is wrong with the digests published on the wire, or None; in both eras, over all pages."""
    declared = server.run(play.binary, "digest", str(play.fixture.file), "--json").stdout
    declared = json.loads(declared)["revisions"]
    legacy = play.session_revision()
    for era, revision, params in (("legacy", legacy, {}), ("modern", "2026-07-28", MODERN)):
        request = {"jsonrpc": "2.0", "method": "tools/list", "params": params}
        once, twice = (play.pages({**request, "id": f"{era}-{time}"}) for time in ("once", "twice"))
        tools = [tool for page in once for tool in page.get("tools", [])]
        if not wire.same(tools, [tool for page in twice for tool in page.get("tools", [])]):
            return f"the {era} list is another at the second time"
        published = {v for page in once for k, v in page.get("_meta", {}).items() if k.endswith("/toolsDigest")}
        for digest, where in [*((p, "published") for p in published), (declared.get(revision), "declared")]:
            if digest != recompute(tools):
                return f"the {era} list has the digest {recompute(tools)}, but {where} is {digest}"
        if not published:
            return f"the {era} list publishes no digest"
    return None
