"""HTTP/1.1 over a bare socket: every byte that is sent is the case's own, every byte that comes is kept."""

import socket
import threading
import time

from . import wire

PATIENCE_MS = 30_000


class Reply:
    """What came of one request, finished or not."""

    def __init__(self, label):
        self.label = label
        self.sent = threading.Event()
        self.ended = threading.Event()
        self.stop = threading.Event()
        self.status = None
        self.headers = []
        self.body = b""
        self.complete = False
        self.closed = False
        self.heard = []
        self.trouble = None
        self.aborted = False

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else wire.ABSENT

    @property
    def is_stream(self):
        kind = self.header("content-type")
        return kind is not wire.ABSENT and kind.lower().startswith("text/event-stream")

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def events(self):
        """The events of a stream that came whole: (id or None, data)."""
        events, number, data = [], None, []
        lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines[:-1]:
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if line == "":
                if data or number is not None:
                    events.append((number, "\n".join(data)))
                number, data = None, []
            elif name == "data":
                data.append(value)
            elif name == "id":
                number = value
        return events

    def messages(self):
        """The JSON-RPC messages of the answer; raises ValueError for what is none."""
        if self.is_stream:
            return [wire.parse(data) for _, data in self.events() if data]
        if not self.body.strip():
            return []
        return [wire.parse(self.body.decode("utf-8"))]

    def last_event_id(self):
        numbers = [number for number, _ in self.events() if number] if self.is_stream else []
        return numbers[-1] if numbers else None

    def longest_silence_ms(self):
        """Between what was heard, and until the reading ended."""
        gaps = [later - earlier for earlier, later in zip(self.heard, self.heard[1:])]
        return max(gaps, default=0) * 1000


class Socket:
    """One connection; reads never block for longer than a slice, so that a stop is heeded."""

    def __init__(self, port, reply):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.reply = reply
        self.held = b""

    def more(self, deadline):
        """Waits for more bytes; False at the end, at the deadline and when told to stop."""
        while not self.reply.stop.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.socket.settimeout(min(left, 0.1))
            try:
                heard = self.socket.recv(1 << 16)
            except TimeoutError:
                continue
            except OSError:
                heard = b""
            if not heard:
                self.reply.closed = True
                return False
            self.reply.heard.append(time.monotonic())
            self.held += heard
            return True
        return False

    def until(self, mark, deadline):
        while mark not in self.held:
            if not self.more(deadline):
                return None
        before, _, self.held = self.held.partition(mark)
        return before

    def take(self, length, deadline):
        while len(self.held) < length:
            if not self.more(deadline):
                return None
        taken, self.held = self.held[:length], self.held[length:]
        return taken


def exchange(port, request, reply, method="POST", read_ms=None, abort_after_ms=None, wait_for_close_ms=0):
    """Sends bytes and reads the answer into `reply`; ends `reply.ended` whatever happens."""
    connection = None
    try:
        connection = Socket(port, reply)
        if abort_after_ms is not None:
            connection.socket.sendall(request)
            reply.sent.set()
            reply.stop.wait(abort_after_ms / 1000)
            reply.aborted = True
            return
        sender = threading.Thread(target=_send, args=(connection.socket, request, reply), daemon=True)
        sender.start()
        deadline = time.monotonic() + (PATIENCE_MS if read_ms is None else read_ms) / 1000
        _read(connection, reply, method, deadline)
        if wait_for_close_ms and not reply.closed:
            connection.more(time.monotonic() + wait_for_close_ms / 1000)
    except OSError as error:
        reply.trouble = f"the connection failed: {error}"
    finally:
        reply.heard.append(time.monotonic())
        if connection is not None:
            connection.socket.close()
        reply.sent.set()
        reply.ended.set()


def _send(channel, request, reply):
    """In a thread of its own: a server may answer, and stop reading, before it has all of a large body."""
    try:
        view = memoryview(request)
        while view and not reply.ended.is_set():
            try:
                view = view[channel.send(view[: 1 << 16]):]
            except TimeoutError:
                continue
    except OSError:
        pass
    reply.sent.set()


def _read(connection, reply, method, deadline):
    head = connection.until(b"\r\n\r\n", deadline)
    if head is None:
        reply.trouble = "no answer came" if not connection.held else "the answer's head never ended"
        return
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        reply.trouble = f"the answer is not HTTP: {first[:80]!r}"
        return
    reply.status = int(words[1])
    for line in lines:
        name, _, value = line.partition(":")
        reply.headers.append((name, value.strip()))
    _read_body(connection, reply, method, deadline)


def _read_body(connection, reply, method, deadline):
    length, coding = reply.header("content-length"), reply.header("transfer-encoding")
    if method == "HEAD" or reply.status in (204, 304):
        reply.complete = True
    elif coding is not wire.ABSENT and coding.lower() == "chunked":
        while (size := connection.until(b"\r\n", deadline)) is not None:
            size = int(size.split(b";")[0], 16)
            if size == 0:
                reply.complete = connection.until(b"\r\n", deadline) is not None
                return
            chunk = connection.take(size + 2, deadline)
            if chunk is None:
                return
            reply.body += chunk[:-2]
    elif length is not wire.ABSENT:
        body = connection.take(int(length), deadline)
        reply.complete = body is not None
        reply.body = connection.held if body is None else body
    else:
        while connection.more(deadline):
            pass
        reply.body, reply.complete = connection.held, reply.closed


def request(method, path, headers, body, port):
    """The bytes of a request; `headers` is a list of (name, bytes)."""
    named = {name.lower() for name, _ in headers}
    if "host" not in named:
        headers = [("host", f"127.0.0.1:{port}".encode()), *headers]
    if body is not None and "content-length" not in named and "transfer-encoding" not in named:
        headers = [*headers, ("content-length", str(len(body)).encode())]
    head = f"{method} {path} HTTP/1.1\r\n".encode()
    return head + b"".join(name.encode() + b": " + value + b"\r\n" for name, value in headers) + b"\r\n" + (body or b"")
