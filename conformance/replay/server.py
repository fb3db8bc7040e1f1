"""One `twodoor` process: started, fed, listened to, measured and ended."""

import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

LISTENING = re.compile(rb"listening on http://[^:\s]+:(\d+)(/\S*)")
MIB = 1 << 20
START_MS = 20_000


class NotStarted(Exception):
    """The server ended, or said nothing, instead of starting."""

    def __init__(self, reason, exit_code=None):
        super().__init__(reason)
        self.exit_code = exit_code


class Server:
    """A running server; `over` is `stdio` or `http`."""

    def __init__(self, binary, surface, over, options=(), env=None, stderr="read", port=0):
        command = [str(binary), "serve", str(surface), *options]
        if over == "http":
            command += ["--http", f"127.0.0.1:{port}"]
        self.over, self.port, self.path = over, None, None
        self.stdout, self.stderr = b"", b""
        self.changed = threading.Condition()
        self.may_read = threading.Event()
        self.may_read.set()
        self.exit_code, self.exited_at, self.cpu_ms = None, None, None
        self.stopped_at = None
        self.ended = False
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if over == "stdio" else subprocess.DEVNULL,
            stdout=subprocess.PIPE if over == "stdio" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=Path(surface).parent,
            env={**os.environ, **(env or {})},
            bufsize=0,
        )
        self.pid = self.process.pid
        self._start(self._reap)
        if stderr == "read":
            self._start(self._read_stderr)
        if over == "stdio":
            self.to_write = queue.SimpleQueue()
            self._start(self._write)
            self._start(self._read_stdout)
        self._await_start(stderr)
        self.rss_at_start = self.memory("VmRSS")
        self.descriptors_at_start = self.descriptors()

    def _start(self, task):
        threading.Thread(target=task, daemon=True).start()

    def _reap(self):
        _, status, usage = os.wait4(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with self.changed:
            self.process.returncode = code
            self.exit_code = 128 - code if code < 0 else code
            self.cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
            self.exited_at = time.monotonic()
            self.changed.notify_all()

    def _read_stderr(self):
        with self.process.stderr as pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                with self.changed:
                    self.stderr += chunk
                    self.changed.notify_all()

    def _read_stdout(self):
        while True:
            self.may_read.wait()
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            with self.changed:
                self.stdout += chunk
                self.ended = not chunk
                self.changed.notify_all()
            if not chunk:
                self.process.stdout.close()
                return

    def _write(self):
        pipe = self.process.stdin.fileno()
        while (part := self.to_write.get()) is not None:
            view = memoryview(part)
            try:
                while view:
                    view = view[os.write(pipe, view):]
            except OSError:
                return
        self.process.stdin.close()

    def _await_start(self, stderr):
        if stderr != "read":
            return
        says_so = lambda: self.stderr and not self.stderr.startswith(b"error")  # noqa: E731
        ready = (lambda: LISTENING.search(self.stderr)) if self.over == "http" else says_so
        if not self.wait(lambda: ready() or self.exit_code is not None, START_MS) or not ready():
            said = self.stderr.decode("utf-8", "replace").strip().replace("\n", " | ")
            self.kill()
            reason = f"the server did not start (exit code {self.exit_code}): {said[:600] or 'it said nothing'}"
            raise NotStarted(reason, self.exit_code)
        if self.over == "http":
            found = LISTENING.search(self.stderr)
            self.port, self.path = int(found[1]), found[2].decode()

    def wait(self, until, milliseconds):
        """Waits for an event; what `until` gave last."""
        deadline = time.monotonic() + milliseconds / 1000
        with self.changed:
            while not (found := until()):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            return found

    def write(self, data):
        self.to_write.put(data)

    def close_stdin(self):
        self.stopped_at = self.stopped_at or time.monotonic()
        self.to_write.put(None)

    def signal(self, name):
        self.stopped_at = self.stopped_at or time.monotonic()
        if self.exit_code is None:
            os.kill(self.pid, getattr(signal, name))

    def alive(self):
        return self.exit_code is None

    def exits_within(self, milliseconds):
        """Whether it ends within a time after it was told to, or from now on."""
        since = self.stopped_at or time.monotonic()
        left = since + milliseconds / 1000 - time.monotonic()
        self.wait(lambda: self.exit_code is not None, max(left, 0) * 1000)
        return self.exit_code is not None and self.exited_at - since <= milliseconds / 1000

    def stop(self):
        """Ends it as a host does: end of input or SIGTERM, then SIGKILL."""
        self.may_read.set()
        if self.alive():
            self.close_stdin() if self.over == "stdio" else self.signal("SIGTERM")
            if not self.exits_within(5000):
                self.kill()
        if self.over == "stdio":
            self.to_write.put(None)
            self.wait(lambda: self.ended, 1000)

    def kill(self):
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)
        self.wait(lambda: self.exit_code is not None, 5000)

    def memory(self, field):
        """Bytes of resident memory, now (`VmRSS`) or at most (`VmHWM`); None where nobody tells."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return None
        found = re.search(rf"^{field}:\s+(\d+) kB", status, re.M)
        return int(found[1]) * 1024 if found else None

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return None

    def zombies(self):
        """Children that have ended and were not waited for; None where nobody tells."""
        if not Path("/proc/self/stat").exists():
            return None
        return sum(1 for state, parent in _processes() if state == "Z" and parent == self.pid)


def _processes():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                yield state, int(parent)
            except OSError:
                continue


def runs(pid):
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run(binary, *arguments, text=""):
    """Runs another subcommand to its end."""
    return subprocess.run(
        [str(binary), *arguments], input=text, capture_output=True, text=True, encoding="utf-8", timeout=60
    )


def help_of(binary, command, _known={}):
    """The help of a subcommand, to see which options this build has."""
    if (binary, command) not in _known:
        _known[binary, command] = run(binary, command, "--help").stdout
    return _known[binary, command]


def problems(binary, surface):
    """What `check` finds wrong with a surface file: its errors."""
    checked = run(binary, "check", str(surface), "--json")
    try:
        found = json.loads(checked.stdout)
    except ValueError:
        said = (checked.stderr or checked.stdout).strip()
        raise NotStarted(f"`check` cannot be understood (exit code {checked.returncode}): {said[:300]}") from None
    return [problem for problem in found if problem["severity"] == "error"]
