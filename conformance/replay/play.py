"""Plays the steps of one case in one way, and keeps all that came."""

import base64
import json
import random
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from . import digests, mirror, server, switches, web, wire
from .fixture import Fixture
from .match import Unknown

VARIABLE = re.compile(r"\$([A-Za-z]\w*)")
# Beside the step's own key.
MODIFIERS = {
    "await_reply": {"timeout_ms"},
    "parallel_calls": {"timeout_ms"},
    "paginate": {"timeout_ms"},
    "http": {"label", "capture"},
    "tcp": {"label", "substitute"},
}
HTTP_KEYS = {
    "method", "path", "headers", "header_bytes_b64", "body", "body_gen", "read_ms", "abort_after_ms", "background",
}
PATIENCE_MS = 10_000
# A longer message is not looked into before it is sent.
PARSED_AT_MOST = 4 << 20
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "replay", "version": "0"},
    },
}


@dataclass
class Line:
    """One line of standard output, or one message of an HTTP answer."""

    data: bytes
    value: object = None
    problem: str | None = None
    whole: bool = True

    @classmethod
    def read(cls, data, whole=True):
        try:
            return cls(data, wire.parse(data.decode("utf-8")), None, whole)
        except ValueError as error:
            return cls(data, None, str(error), whole)


class Play:
    """One way of playing one case. `failures` are those of the steps themselves."""

    def __init__(self, case, binary, over, folder, variant=0):
        self.case, self.binary, self.over, self.variant = case, binary, over, variant
        self.folder = folder
        self.fixture = Fixture(case, binary, folder)
        self.variables = {"TMP": str(folder)}
        self.captured = {name for step in walk(case["steps"]) for name in step.get("capture", {})}
        self.failures = []
        self.options, self.environment, self.stderr = [], {}, "read"
        self.may_be_refused = set(case.get("may_be_refused", ()))
        self.server, self.before, self.read_to, self.lines_now = None, [], 0, []
        self.bytes_before = b""
        self.heard = threading.Condition()
        self.answers = {}
        self.digests, self.wire_digest, self.state = {}, None, None
        self.missed = []
        self.cancelled_at, self.handshake_at, self.cancel_times = {}, None, {}
        self.session, self.revision = None, None
        self.guard = None
        self.paused = False

    def run(self):
        for step in self.case["steps"]:
            self.step(step)

    def step(self, step):
        keys = [key for key in step if key in STEPS]
        if len(keys) != 1:
            raise Unknown(f"the step {wire.short(step)} is not known: expected one of {', '.join(STEPS)}")
        beside = set(step) - {keys[0]} - MODIFIERS.get(keys[0], set())
        if beside:
            raise Unknown(f"the step {keys[0]} has the unknown key {sorted(beside)[0]!r}")
        STEPS[keys[0]](self, step[keys[0]], step)

    def end(self):
        for answer in self.answers.values():
            answer.stop.set()
        if self.server is not None:
            self.server.stop()
        if self.guard is not None:
            self.guard.close()

    # The server.

    def engine(self):
        """The server, started when a step first needs it."""
        if self.server is None:
            self.fixture.write(self.may_be_refused)
            self.start()
        return self.server

    def start(self, port=0):
        self.server = server.Server(
            self.binary, self.fixture.file, self.over, self.options, self.environment, self.stderr, port
        )
        self.session, self.revision = None, None
        if self.server.port:
            self.variables["PORT"] = str(self.server.port)
        if self.paused:
            self.server.may_read.clear()

    def set_aside(self):
        """Keeps what the process said, which is over."""
        if self.over == "stdio":
            self.before += self.lines(self.server.ended)
            self.bytes_before += self.server.stdout
            self.read_to, self.lines_now = 0, []

    def stdout(self):
        return self.bytes_before + (self.server.stdout if self.server and self.over == "stdio" else b"")

    def lines(self, rest=False):
        """All lines so far, of every process; `rest` counts what has no end as a line too."""
        if self.over != "stdio" or self.server is None:
            return self.before + self.lines_now
        said = self.server.stdout
        while (end := said.find(b"\n", self.read_to)) >= 0:
            self.lines_now.append(Line.read(said[self.read_to:end]))
            self.read_to = end + 1
        tail = said[self.read_to:]
        return self.before + self.lines_now + ([Line.read(tail, whole=False)] if rest and tail else [])

    def messages(self):
        """Every JSON-RPC object that came, those in batches too, with the number of its line."""
        for number, line in enumerate(self.lines()):
            for value in line.value if isinstance(line.value, list) else [line.value]:
                if isinstance(value, dict):
                    yield number, value

    def replies(self, number):
        return [m for _, m in self.messages() if "method" not in m and wire.same(m.get("id", wire.ABSENT), number)]

    def error_lines(self):
        """Errors that name no request."""
        return [m for _, m in self.messages() if "error" in m and m.get("id") is None]

    def session_revision(self):
        """What the last handshake agreed on."""
        agreed = [wire.find(m, "/result/protocolVersion") for _, m in self.messages()]
        return next((r for r in reversed(agreed) if r is not wire.ABSENT), None)

    def wait(self, until, milliseconds):
        if self.over == "stdio":
            return self.engine().wait(lambda: until() or self.server.ended, milliseconds) and until()
        deadline = time.monotonic() + milliseconds / 1000
        with self.heard:
            while not (found := until()):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self.heard.wait(left)
            return found

    # Variables.

    def fill(self, text):
        return VARIABLE.sub(lambda found: self.variables.get(found[1], found[0]), text)

    def fill_header(self, text):
        """None where the value stands for something that the server never gave."""
        for name in VARIABLE.findall(text):
            if name not in self.variables:
                kind, of, label = name.partition("_OF_")
                value = self.value_of(kind, label) if of else None
                if value is None and not of and name not in self.captured:
                    raise Unknown(f"the variable ${name} is not known")
                if value is None:
                    return None
                self.variables[name] = value
        return self.fill(text)

    def value_of(self, kind, label):
        answer = self.answers.get(label)
        if answer is None:
            raise Unknown(f"${kind}_OF_{label} names no earlier step")
        if kind == "SID":
            value = answer.header("mcp-session-id")
            return None if value is wire.ABSENT else value
        if kind == "LAST_EVENT_ID":
            return answer.last_event_id()
        raise Unknown(f"the variable ${kind}_OF_{label} is not known")

    # Messages.

    def send(self, value, _step):
        filled = self.fill(json.dumps(value))
        self.emit(filled.encode() + b"\n")

    def send_raw(self, text, _step):
        self.emit(text.encode("utf-8", "surrogatepass"))

    def send_b64(self, text, _step):
        self.emit(base64.b64decode(text, validate=True))

    def send_gen(self, made, _step):
        parts = (made["prefix"], made["repeat"] * made["times"], made.get("mid", ""), made["suffix"])
        self.emit("".join(parts).encode())

    def emit(self, data):
        """Writes bytes to standard input, or posts them as one message."""
        engine = self.engine()
        message = Line.read(data).value if len(data) <= PARSED_AT_MOST else None
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            number = (message.get("params") or {}).get("requestId")
            self.cancelled_at[wire.raw(number)] = len(self.lines())
            self.cancel_times[wire.raw(number)] = time.monotonic()
        if self.over == "stdio":
            engine.write(data)
            return
        post = threading.Thread(target=self.post, args=(data.strip(), message), daemon=True)
        post.start()
        if not isinstance(message, dict) or "id" not in message or message.get("method") == "initialize":
            post.join(PATIENCE_MS / 1000)

    def post(self, data, message):
        """Posts one message as a client of its era does, and takes the answers as lines."""
        headers = mirror.headers(message, self.session, self.revision, self.fixture.schemas)
        answer = web.Reply(None)
        request = web.request("POST", self.server.path, headers, data, self.server.port)
        web.exchange(self.server.port, request, answer)
        try:
            said = answer.messages()
        except ValueError as error:
            said = []
            self.failures.append(f"the answer to a POST is no JSON-RPC: {error}")
        if answer.trouble:
            self.failures.append(f"a POST failed: {answer.trouble}")
        if isinstance(message, dict) and message.get("method") == "initialize" and said:
            session = answer.header("mcp-session-id")
            self.session = self.session if session is wire.ABSENT else session
            revision = wire.find(said[-1], "/result/protocolVersion")
            self.revision = self.revision if revision is wire.ABSENT else revision
        with self.heard:
            self.lines_now += [Line(wire.raw(value).encode(), value) for value in said]
            self.heard.notify_all()

    def await_reply(self, number, step):
        wanted = next((r for r in self.case["expect"].get("replies", []) if wire.same(r["id"], number)), {})
        instead = wanted.get("or_error_line", [])

        def came():
            return self.replies(number) or any(e["error"].get("code") in instead for e in self.error_lines())

        milliseconds = step.get("timeout_ms", PATIENCE_MS)
        if not self.wait(came, milliseconds):
            self.missed.append(number)
            self.failures.append(f"no reply to {wire.short(number)} within {milliseconds} ms")
        elif self.handshake_at is None:
            self.handshake_at = len(self.lines())

    def parallel_calls(self, calls, step):
        """Sends requests without waiting in between: a list, or `{"times": N, "send": REQUEST}` with ids that count up."""
        if isinstance(calls, dict):
            calls = [{**calls["send"], "id": calls["send"]["id"] + at} for at in range(calls["times"])]
        for call in calls:
            self.send(call, step)
        for call in calls:
            self.await_reply(call["id"], step)

    def paginate(self, wanted, step):
        """Follows `nextCursor` to the end; a reply with the request's id then holds all pages joined."""
        request = {"jsonrpc": "2.0", "id": "pages", **({"method": wanted} if isinstance(wanted, str) else wanted)}
        pages = self.pages(request, step.get("timeout_ms", PATIENCE_MS))
        whole = dict(pages[-1]) if pages else {}
        for name in [name for name in whole if isinstance(whole[name], list)]:
            whole[name] = [item for page in pages for item in page.get(name, [])]
        joined = {"jsonrpc": "2.0", "id": request["id"], "result": whole}
        with self.heard:
            self.lines_now.append(Line(json.dumps(joined).encode(), joined))

    def pages(self, request, milliseconds=PATIENCE_MS):
        pages, cursors = [], set()
        while True:
            number = f"{request['id']}-{len(pages) + 1}"
            params = dict(request.get("params", {}))
            if cursors:
                params["cursor"] = cursor
            page = {key: value for key, value in request.items() if key != "params"}
            self.send({**page, "id": number, **({"params": params} if params else {})}, {})
            if not self.wait(lambda: self.replies(number), milliseconds):
                self.failures.append(f"no page {len(pages) + 1} of {request['method']} within {milliseconds} ms")
                return pages
            result = self.replies(number)[0].get("result")
            if not isinstance(result, dict):
                self.failures.append(f"page {len(pages) + 1} of {request['method']} is {wire.short(self.replies(number)[0])}")
                return pages
            pages.append(result)
            cursor = result.get("nextCursor")
            if cursor is None:
                return pages
            if cursor in cursors:
                self.failures.append(f"the cursor {cursor!r} of {request['method']} came twice")
                return pages
            cursors.add(cursor)

    # HTTP.

    def http(self, spec, step):
        unknown = set(spec) - HTTP_KEYS
        if unknown:
            raise Unknown(f"the step http has the unknown key {sorted(unknown)[0]!r}")
        headers = []
        for name, value in spec.get("headers", {}).items():
            filled = self.fill_header(value)
            if filled is not None:
                headers.append((name, filled.encode()))
        headers += [(name, base64.b64decode(value)) for name, value in spec.get("header_bytes_b64", {}).items()]
        body = spec.get("body")
        if "body_gen" in spec:
            body = spec["body_gen"]["repeat"] * spec["body_gen"]["times"]
        if body is not None:
            body = self.fill(body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "surrogatepass")
        method, engine = spec.get("method", "POST"), self.engine()
        request = web.request(method, self.fill(spec["path"]), headers, body, engine.port)
        timing = {"read_ms": spec.get("read_ms"), "abort_after_ms": spec.get("abort_after_ms")}
        answer = self.exchange(step, request, method, bool(spec.get("background")), **timing)
        for name, source in step.get("capture", {}).items():
            if not source.startswith("header:"):
                raise Unknown(f"the capture {source!r} is not known: expected header:NAME")
            value = answer.header(source.removeprefix("header:"))
            if value is not wire.ABSENT:
                self.variables[name] = value

    def exchange(self, step, request, method, background=False, **timing):
        answer = web.Reply(step.get("label"))
        wanted = [w for w in self.case["expect"].get("http", []) if w["label"] == answer.label]
        for closing in (w["connection_closed"] for w in wanted if "connection_closed" in w):
            timing["wait_for_close_ms"] = PATIENCE_MS if closing else 300
        if answer.label is not None:
            self.answers[answer.label] = answer
        arguments = (self.engine().port, request, answer, method)
        if background:
            threading.Thread(target=web.exchange, args=arguments, kwargs=timing, daemon=True).start()
            answer.sent.wait(PATIENCE_MS / 1000)
        else:
            web.exchange(*arguments, **timing)
        return answer

    def join(self, label, _step):
        if label not in self.answers:
            raise Unknown(f"join names no earlier step: {label!r}")
        if not self.answers[label].ended.wait(web.PATIENCE_MS / 1000):
            self.failures.append(f"{label} did not end")

    def tcp(self, text, step):
        body = json.dumps(INITIALIZE, separators=(",", ":"))
        for mark, meaning in step.get("substitute", {}).items():
            size = re.search(r"initialize request split into (\d+)-byte chunks", meaning)
            if size is None:
                raise Unknown(f"the substitution {meaning!r} is not known")
            text = text.replace(mark, _chunks(text.split(mark)[0], body, int(size[1])))
        engine = self.engine()
        given = {"LEN": str(len(body)), "INITIALIZE_BODY": body, "PORT": str(engine.port)}
        text = re.sub(r"\$(LEN|INITIALIZE_BODY|PORT)\b", lambda found: given[found[1]], text)
        self.exchange(step, text.encode(), text.split(" ", 1)[0])

    def repeat(self, spec, _step):
        for _ in range(spec["times"]):
            self.step(spec["step"])

    # Time and processes.

    def sleep_ms(self, milliseconds, _step):
        self.engine()
        time.sleep(milliseconds / 1000)

    def close_stdin(self, _wanted, _step):
        self.engine().close_stdin()

    def signal(self, name, _step):
        self.engine().signal(name)

    def new_process(self, _wanted, _step):
        self.engine().stop()
        self.set_aside()
        self.start()

    def restart_server(self, _wanted, _step):
        port = self.engine().port or 0
        self.server.stop()
        self.set_aside()
        self.start(port)

    def kill_at_random(self, between, _step):
        """SIGKILL at a moment within `[from, to]` milliseconds, half a second if nothing is said."""
        low, high = between if isinstance(between, list) else (0, 500)
        self.engine()
        time.sleep(random.uniform(low, high) / 1000)
        self.server.kill()

    def stdout_reader(self, wanted, _step):
        if wanted not in ("pause", "resume"):
            raise Unknown(f"stdout_reader does not know {wanted!r}: expected pause or resume")
        self.paused = wanted == "pause"
        if self.server is not None:
            (self.server.may_read.clear if self.paused else self.server.may_read.set)()

    # Hooks on the engine's own switches.

    def spawn(self, wanted, _step):
        for key, value in wanted.items():
            if key == "stderr" and value in ("read", "pipe-unread"):
                self.stderr = value
            elif key == "env_add":
                self.environment.update(value)
            else:
                raise Unknown(f"spawn does not know {key}: {wire.short(value)}")

    def config(self, wanted, _step):
        switches.configure(self, wanted)

    def config_tools(self, names, _step):
        self.may_be_refused.update(names)

    def touch(self, what, _step):
        if what == "tools-config":
            self.engine()
            self.fixture.add_tool({"name": "added_later", "inputSchema": {"type": "object"}, "argv": ["true"]})
        else:
            Path(self.fill(what)).touch()

    def write_state_file(self, wanted, _step):
        self.state = switches.write_state(self, wanted["variants"][self.variant])

    def manual(self, what, _step):
        raise switches.CannotDo(f"by hand only: {what}")

    # Digests.

    def digest(self, spec, _step):
        self.digests[spec["label"]] = digests.of_list(self.binary, spec["tools_json"])

    def digest_from_wire(self, _wanted, _step):
        self.engine()
        self.wire_digest = digests.compare_wire(self)


STEPS = {
    name: getattr(Play, name)
    for name in (
        "send send_raw send_b64 send_gen await_reply sleep_ms close_stdin signal new_process http join tcp repeat "
        "digest spawn config config_tools touch restart_server write_state_file parallel_calls kill_at_random "
        "stdout_reader paginate digest_from_wire manual"
    ).split()
}


def walk(steps):
    """The steps, those within `repeat` too."""
    for step in steps:
        yield step
        if "repeat" in step:
            yield from walk([step["repeat"]["step"]])


def _chunks(before, body, size):
    """What is left of a body after the chunk that is written out just before."""
    written = next((n for n in range(len(body), 0, -1) if before.endswith(body[:n] + "\r\n")), 0)
    rest = body[written:]
    parts = [rest[at:at + size] for at in range(0, len(rest), size)]
    return "".join(f"{len(part):x}\r\n{part}\r\n" for part in parts)
