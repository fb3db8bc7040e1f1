"""The Python SDK with JSON answers, under uvicorn with uvloop and httptools.

`server.py http` serves modern requests, `server.py sessions` legacy sessions; both print their URL.
`server.py stdio` serves the standard streams.
"""

import os
import socket
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("python", log_level="ERROR")


def text_tool(text: str) -> str:
    return text


def filler(query: str, limit: int = 10, verbose: bool = False) -> str:
    return query


called = [
    ("echo", "Echo the text back"),
    ("progress", "Echo the text back after ten notices of progress"),
    ("slow", "Echo the text back after a while"),
]
for name, description in called:
    server.add_tool(text_tool, name=name, description=description, structured_output=False)
for i in range(len(called), int(os.environ.get("TOOLS", "100"))):
    description = f"Synthetic tool number {i}, here to give tools/list a realistic size."
    server.add_tool(filler, name=f"tool_{i:04}", description=description, structured_output=False)


def serve_http() -> None:
    import uvicorn

    app = server.streamable_http_app(json_response=True, max_sessions=None)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


doors = {"http": serve_http, "sessions": serve_http, "stdio": lambda: server.run("stdio")}
if sys.argv[1:2] and sys.argv[1] in doors:
    doors[sys.argv[1]]()
else:
    sys.exit("server.py http | sessions | stdio")
