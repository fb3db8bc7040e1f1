"""The official Python client (mcp 2.x) against one server.

client.py auto|legacy TOOL JSON-ARGUMENTS TARGET...    TARGET: a URL (HTTP+SSE if it ends in /sse), or
                                                       a command with its arguments

Prints one JSON line. Exit 0: the call succeeded, every tool arrived, and the digest recomputed
from the list as delivered is the one that the server publishes.
"""

import asyncio
import hashlib
import json
import sys
from contextlib import AbstractAsyncContextManager

from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

KEY = "dev.twodoor/toolsDigest"


class Tap(AbstractAsyncContextManager):
    """A transport that keeps every result as decoded JSON, before the SDK's types can drop a member."""

    def __init__(self, inner):
        self.inner, self.results = inner, []

    async def __aenter__(self):
        self.read, write = await self.inner.__aenter__()
        return TappedStream(self.read, self.results), write

    async def __aexit__(self, *exc):
        return await self.inner.__aexit__(*exc)


class TappedStream:
    def __init__(self, inner, results):
        self.inner, self.results = inner, results

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def note(self, item):
        result = getattr(getattr(item, "message", None), "result", None)
        if result is not None:
            # A copy: the SDK may change what it was given.
            self.results.append(json.loads(json.dumps(result)))
        return item

    async def receive(self):
        return self.note(await self.inner.receive())

    def __aiter__(self):
        return self

    async def __anext__(self):
        return self.note(await self.inner.__anext__())

    async def __aenter__(self):
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc):
        return await self.inner.__aexit__(*exc)


def digest(tools):
    text = json.dumps(tools, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


async def main(mode, tool, arguments, *target):
    if target[0].startswith("http"):
        transport = "sse" if target[0].endswith("/sse") else "http"
        inner = (sse_client if transport == "sse" else streamable_http_client)(target[0])
    else:
        transport = "stdio"
        inner = stdio_client(StdioServerParameters(command=target[0], args=list(target[1:])))
    tap = Tap(inner)
    async with Client(tap, mode=mode) as client:
        opened = client.session.discover_result or client.session.initialize_result
        published = {(opened.meta or {}).get(KEY)}
        before, names, cursor = len(tap.results), [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            published.add((page.meta or {}).get(KEY))
            names += [t.name for t in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        delivered = [t for r in tap.results[before:] for t in r.get("tools", [])]
        called = await client.call_tool(tool, json.loads(arguments))
        recomputed = digest(delivered)
        row = {
            "client": "python",
            "mode": mode,
            "transport": transport,
            "revision": client.protocol_version,
            "tools": len(names),
            "digest_published": published.pop() if len(published) == 1 else sorted(map(str, published)),
            "digest_recomputed": recomputed,
            "call": {
                "isError": bool(called.is_error),
                "text": next((c.text for c in called.content if c.type == "text"), None),
            },
        }
    print(json.dumps(row, ensure_ascii=False))
    good = row["digest_published"] == recomputed and not called.is_error
    return 0 if good and names == [t["name"] for t in delivered] else 1


try:
    sys.exit(asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 60)))
except Exception as error:
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    print(json.dumps({"client": "python", "mode": sys.argv[1], "error": f"{type(error).__name__}: {error}"}))
    sys.exit(1)
