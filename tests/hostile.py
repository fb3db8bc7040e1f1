"""A server that misbehaves in the way that its first argument names, over stdio, or over HTTP if the second says so."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = sys.argv[1]
PAGES = iter(range(10**9))
LONG = 100 * 1024 * 1024


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


def listing():
    """The text of a result of tools/list; or of a whole answer, in pieces."""
    if MODE == "endless":
        n = next(PAGES)
        return {"tools": [tool(f"t{n}")], "nextCursor": f"c{n}"}
    if MODE == "circle":
        return {"tools": [tool("t")], "nextCursor": "c"}
    if MODE == "many":
        return {"tools": [tool(f"t{n}") for n in range(100_000)]}
    if MODE == "too-many":
        return {"tools": [tool(f"t{n}") for n in range(100_001)]}
    if MODE == "twice":
        return {"tools": [tool("same"), tool("same")]}
    if MODE == "escapes":
        return {"tools": [tool("\x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m\r\n"), {**tool("u"), "description": "\x1b[31m\u2066"}]}
    return {"tools": [tool("t")]}


def answer(message):
    """The answer to a message, in pieces; nothing to a notification."""
    if "id" not in message:
        return []
    head = {"jsonrpc": "2.0", "id": "another" if MODE == "other" and message["method"] == "tools/list" else message["id"]}
    method, params = message["method"], message.get("params", {})
    asked = params.get("protocolVersion") or params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
    facts = {"capabilities": {"tools": {}}, "serverInfo": {"name": "\x1b[2Jf", "version": "1"}}
    if method == "initialize":
        version = asked if MODE == "echo" else "2025-11-25"
        return [json.dumps({**head, "result": {"protocolVersion": version, **facts}})]
    if method == "server/discover" and MODE == "echo":
        return [json.dumps({**head, "result": {"supportedVersions": [asked, "9999-99-99\x1b[2J"], "resultType": "complete", **facts}})]
    if method != "tools/list":
        return [json.dumps({**head, "error": {"code": -32601, "message": "no \x1b[2J"}})]
    if MODE == "hang":
        threading.Event().wait()
    if MODE == "line":
        return ["x" * (1024 * 1024)] * (LONG // (1024 * 1024))
    if MODE == "keys":
        return [json.dumps(head)[:-1] + ', "result": {"tools": [{"name": "a", "name": "b", "inputSchema": {}}]}}']
    if MODE == "deep":
        return [json.dumps(head)[:-1] + ', "result": {"tools": ' + "[" * 100_000 + "]" * 100_000 + "}}"]
    if MODE == "refuses":
        return [json.dumps({**head, "error": {"code": -32000, "message": "\x1b[2J" + "no" * 1_000_000}})]
    return [json.dumps({**head, "result": listing()})]


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        pieces = answer(message)
        self.send_response(200 if pieces else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(sum(len(piece.encode()) for piece in pieces)))
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece.encode())

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


if sys.argv[2:] == ["http"]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()

for line in sys.stdin:
    said = answer(json.loads(line))
    for piece in said:
        sys.stdout.write(piece)
    if said:
        sys.stdout.write("\n")
        sys.stdout.flush()
