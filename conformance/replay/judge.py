"""What a case expects, held against what came. Every expectation has one function that yields reasons."""

import json
import time
from pathlib import Path

from . import digests, server, switches, wire
from .match import MATCHERS, Setting, Unknown, mismatch, statuses

SETTLE_MS = 10_000
QUIET_S = 0.15
FEATURE_RULE = "undeclared => -32601"


def judge(play):
    """Every reason why the case fails, beside those of its steps."""
    expect = fill(play.case["expect"], play)
    check_known(expect)
    wanted = [reply["id"] for reply in expect.get("replies", []) if "or_error_line" not in reply]
    awaited = [number for number in wanted if number not in play.missed]
    if play.server is not None and play.server.alive():
        play.wait(lambda: all(play.replies(number) for number in awaited), SETTLE_MS)
        if "stdout" in expect or "no_reply" in expect:
            time.sleep(QUIET_S)
    reasons = []
    for name, value in expect.items():
        reasons += EXPECTED[name](play, value)
    return reasons


def fill(expect, play):
    """The expectation with `$TMP` in its texts replaced."""
    return json.loads(json.dumps(expect).replace("$TMP", json.dumps(play.variables["TMP"])[1:-1]))


def check_known(expect):
    """Raises for words that this runner does not know, wherever they stand: they must not pass unseen."""
    unknown = set(expect) - set(EXPECTED)
    if unknown:
        raise Unknown(f"the expectation {sorted(unknown)[0]!r} is not known")
    for reply in expect.get("replies", []):
        _check_keys("replies", reply, {"id", "match", "or_error_line"})
        _check_matchers(reply.get("match", {}))
    for reply in expect.get("http", []):
        _check_keys("http", reply, {"label", *HTTP})
        for key in ("body", "headers", "first_event"):
            _check_matchers(reply.get(key, {}))
    for name, known in (("stdout", STDOUT), ("process", PROCESS), ("digest", DIGEST)):
        _check_keys(name, expect.get(name, {}), known)


def _check_keys(where, given, known):
    unknown = set(given) - set(known)
    if unknown:
        raise Unknown(f"the expectation {where} has the unknown key {sorted(unknown)[0]!r}")


def _check_matchers(value):
    if isinstance(value, dict):
        if any(key.startswith("$") for key in value):
            _check_keys("match", value, MATCHERS)
        for inner in value.values():
            _check_matchers(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_matchers(inner)


# Replies.


def _replies(play, wanted):
    for reply in wanted:
        number, instead = reply["id"], reply.get("or_error_line", [])
        found = play.replies(number)
        if not found:
            if any(e["error"].get("code") in instead for e in play.error_lines()):
                continue
            if number not in play.missed:
                yield f"no reply to {wire.short(number)}"
            continue
        setting = Setting(sessions=lambda: offers_sessions(play))
        reason = mismatch(reply["match"], found[0], setting)
        if reason:
            yield f"reply to {wire.short(number)}: {reason}"


def _no_reply(play, numbers):
    for number in numbers:
        if found := play.replies(number):
            yield f"{wire.short(number)} must have no reply, but has {wire.short(found[0])}"


def offers_sessions(play):
    """Whether the server names sessions: what it did so far, else what it does to one more initialize."""
    if any(answer.header("mcp-session-id") is not wire.ABSENT for answer in play.answers.values()) or play.session:
        return True
    if play.over != "http" or play.server is None or not play.server.alive():
        return False
    from .mirror import PLAIN
    from .play import INITIALIZE
    from .web import Reply, exchange, request

    answer, body = Reply(None), json.dumps(INITIALIZE).encode()
    exchange(play.server.port, request("POST", play.server.path, PLAIN, body, play.server.port), answer)
    return answer.header("mcp-session-id") is not wire.ABSENT


def _capability_consistency(play, wanted):
    """What is not declared is -32601; what is declared works, or says what is wrong with the arguments."""
    if not wanted.get("rule", FEATURE_RULE).startswith(FEATURE_RULE):
        raise Unknown(f"the rule {wanted['rule']!r} is not known")
    declared = next(
        (c for _, m in play.messages() if (c := wire.find(m, "/result/capabilities")) is not wire.ABSENT), {}
    )
    for number, feature in wanted.items():
        if number == "rule":
            continue
        offered = wire.find(declared, "/" + feature.replace(".", "/"))
        offered = offered is not wire.ABSENT and offered is not False
        found = play.replies(int(number))
        code = wire.find(found[0], "/error/code") if found else wire.ABSENT
        fits = (code in (wire.ABSENT, -32602, -32002)) if offered else code == -32601
        if not found or not fits:
            said = wire.short(found[0]) if found else "nothing"
            yield f"{feature} is {'declared' if offered else 'not declared'}, but request {number} gets {said}"


# HTTP.


def _http(play, wanted):
    for reply in wanted:
        label = reply["label"]
        answer = play.answers.get(label)
        if answer is None:
            raise Unknown(f"the expectation http names no step: {label!r}")
        if answer.status is None:
            yield f"{label}: {answer.trouble or 'no answer came'}"
            continue
        for name, value in reply.items():
            if name != "label":
                yield from (f"{label}: {reason}" for reason in HTTP[name](play, answer, value))
        if not answer.complete and not answer.aborted and not answer.is_stream:
            yield f"{label}: the answer did not end"


def _setting(play, answer):
    return Setting(sse=answer.is_stream, sessions=lambda: offers_sessions(play))


def _status(play, answer, listed):
    allowed = statuses(listed, lambda label: play.answers[label].status)
    if answer.status not in allowed:
        yield f"status {answer.status}, expected {' or '.join(map(str, allowed))} ({wire.short(answer.text)})"


def _headers(play, answer, wanted):
    for name, matcher in wanted.items():
        if reason := mismatch(matcher, answer.header(name), _setting(play, answer), f"header {name}"):
            yield reason


def _body(play, answer, matcher):
    try:
        said = answer.messages()
    except ValueError as error:
        yield f"the body is no JSON: {error}: {answer.text[:160]!r}"
        return
    reason = mismatch(matcher, said[-1] if said else wire.ABSENT, _setting(play, answer))
    if reason:
        yield reason


def _first_event(play, answer, matcher):
    try:
        said = answer.messages()
    except ValueError as error:
        yield f"the stream is no JSON-RPC: {error}"
        return
    reason = mismatch(matcher, said[0] if said else wire.ABSENT, _setting(play, answer))
    if reason:
        yield f"first event: {reason}"


def _body_empty(_play, answer, wanted):
    if (answer.body == b"") != wanted:
        yield f"the body is {wire.short(answer.text)}, expected {'none' if wanted else 'some'}"


def _text_absent(_play, answer, texts):
    said = answer.text + str(answer.headers)
    yield from (f"{text!r} must not be in the answer" for text in texts if text in said)


def _no_events_with_id(_play, answer, numbers):
    said = answer.messages() if answer.is_stream else []
    for number in numbers:
        if any(wire.same(m.get("id", wire.ABSENT), number) for m in said if isinstance(m, dict)):
            yield f"a message with the id {wire.short(number)} is on the stream"


def _sse_max_silence_ms(_play, answer, most):
    if not answer.is_stream:
        yield "the answer is no event stream"
    elif answer.longest_silence_ms() > most:
        yield f"the stream was silent for {answer.longest_silence_ms():.0f} ms, at most {most} ms are allowed"


def _connection_closed(_play, answer, wanted):
    if answer.closed != wanted:
        yield f"the server {'closed' if answer.closed else 'kept'} the connection"


def _no_chunked(_play, answer, wanted):
    coding = answer.header("transfer-encoding")
    if wanted and coding is not wire.ABSENT and "chunked" in coding.lower():
        yield "the answer is chunked"


HTTP = {
    "status": _status,
    "headers": _headers,
    "body": _body,
    "first_event": _first_event,
    "body_empty": _body_empty,
    "text_absent": _text_absent,
    "no_events_with_id": _no_events_with_id,
    "sse_max_silence_ms": _sse_max_silence_ms,
    "connection_closed": _connection_closed,
    "no_chunked": _no_chunked,
}


# Standard output.


def _stdout(play, wanted):
    if play.over != "stdio":
        return
    for name, value in wanted.items():
        if name not in BESIDE_ANOTHER:
            yield from (f"stdout: {reason}" for reason in STDOUT[name](play, value, wanted))


def _is_message(value):
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    if "method" in value:
        return isinstance(value["method"], str) and "result" not in value and "error" not in value
    return ("result" in value) != ("error" in value)


def _only_jsonrpc_lines(play, _value, _all):
    for line in play.lines(rest=True):
        said = line.data[:120]
        values = line.value if isinstance(line.value, list) and line.value else [line.value]
        if line.problem:
            yield f"a line is no JSON ({line.problem}): {said!r}"
        elif not all(map(_is_message, values)):
            yield f"a line is no JSON-RPC 2.0 message: {said!r}"
        elif not line.whole:
            yield f"the last line has no end: {said!r}"


def _no_cr(play, _value, _all):
    if b"\r" in play.stdout():
        yield "a carriage return was written"


def _no_bom(play, _value, _all):
    if any(line.data.startswith(b"\xef\xbb\xbf") for line in play.lines(rest=True)):
        yield "a line begins with a byte order mark"


def _one_message_per_line(play, _value, _all):
    for line in play.lines(rest=True):
        if line.problem or not _is_message(line.value) or not line.whole:
            yield f"a line is not exactly one message: {line.data[:120]!r}"


def _valid_utf8(play, _value, _all):
    try:
        play.stdout().decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"what was written is no UTF-8: {error}"


def _codes(play):
    return [error["error"].get("code") for error in play.error_lines()]


def _error_lines_codes(play, allowed, everything):
    yield from (f"an error without id has the code {code}" for code in _codes(play) if code not in allowed)
    if "or_exact_echo" in everything:
        sent = [step["send"].get("id") for step in play.case["steps"] if "send" in step]
        for raw in _raw_ids(play):
            if raw not in everything["or_exact_echo"] and raw not in map(wire.raw, sent):
                yield f"a reply has the id {raw}, which nobody sent in this spelling"


def _max_error_lines(play, most, _all):
    if len(_codes(play)) > most:
        yield f"{len(_codes(play))} errors without id, at most {most} are allowed"


def _raw_ids(play):
    return [wire.raw(m["id"]) for _, m in play.messages() if "method" not in m and m.get("id") is not None]


def _forbid_ids(play, numbers, _all):
    for number in numbers:
        if play.replies(number):
            yield f"a reply echoes the id {wire.short(number)}"


def _raw_ids_present(play, wanted, _all):
    yield from (f"no reply has exactly the id {raw}" for raw in wanted if raw not in _raw_ids(play))


def _raw_ids_or_error(play, wanted, _all):
    missing = [raw for raw in wanted if raw not in _raw_ids(play)]
    if _codes(play).count(-32600) < len(missing):
        yield f"neither a reply nor an error -32600 for each of the ids {', '.join(missing)}"


def _max_lines_after_handshake(play, most, _all):
    after = len(play.lines(rest=True)) - (play.handshake_at or 0)
    if after > most:
        yield f"{after} lines after the handshake, at most {most} are allowed"


def _batch_reply_ids(play, numbers, everything):
    for line in play.lines():
        if isinstance(line.value, list):
            ids = [m.get("id") for m in line.value if isinstance(m, dict)]
            if sorted(map(wire.raw, ids)) == sorted(map(wire.raw, numbers)):
                return
    if everything.get("or_error_code", wire.ABSENT) not in _codes(play):
        yield f"no array with replies to {wire.short(numbers)}"


def _max_bytes(play, most, _all):
    if len(play.stdout()) > most:
        yield f"{len(play.stdout())} bytes, at most {most} are allowed"


def _max_replies_per_id(play, most, _all):
    ids = _raw_ids(play)
    for raw in sorted(set(ids)):
        if ids.count(raw) > most:
            yield f"{ids.count(raw)} replies to {raw}, at most {most} are allowed"


def _place(play, number):
    return next((at for at, m in play.messages() if "method" not in m and wire.same(m.get("id"), number)), None)


def _reply_before(play, pairs, _all):
    for first, second in pairs:
        places = _place(play, first), _place(play, second)
        if None in places or places[0] > places[1]:
            yield f"the reply to {first} is not before that to {second}"


def _no_progress_after_reply_to(play, number, _all):
    requests = [s["send"] for s in play.case["steps"] if "send" in s]
    tokens = [wire.find(r, "/params/_meta/progressToken") for r in requests if wire.same(r.get("id"), number)]
    answered = _place(play, number)
    for at, message in play.messages():
        token = wire.find(message, "/params/progressToken")
        late = answered is not None and at > answered
        if late and message.get("method") == "notifications/progress" and any(wire.same(token, t) for t in tokens):
            yield f"progress for {wire.short(token)} after the reply: {wire.short(message)}"


def _no_subscription_messages_after_cancel(play, number, _all):
    """Acknowledged first, or refused; nothing of it after the cancel but a final result."""
    at_cancel = play.cancelled_at.get(wire.raw(number), 0)
    tagged = "/params/_meta/io.modelcontextprotocol~1subscriptionId"
    own = [(at, m) for at, m in play.messages() if wire.same(wire.find(m, tagged), number)]
    refused = any(wire.find(m, "/error/code") == -32601 for m in play.replies(number))
    if not refused and (not own or own[0][1].get("method") != "notifications/subscriptions/acknowledged"):
        yield f"the subscription {number} was not acknowledged first"
    for at, message in own:
        if at >= at_cancel:
            yield f"after the cancel: {wire.short(message)}"
    if any("error" in m for m in play.replies(number)) and not refused:
        yield f"the subscription {number} failed: {wire.short(play.replies(number)[0])}"


def _stdout_text_absent(play, texts, _all):
    said = play.stdout().decode("utf-8", "replace")
    yield from (f"{text!r} must not be written" for text in texts if text in said)


def _beside(_play, _value, _all):
    yield from ()


STDOUT = {
    "only_jsonrpc_lines": _only_jsonrpc_lines,
    "no_cr": _no_cr,
    "no_bom": _no_bom,
    "one_message_per_line": _one_message_per_line,
    "valid_utf8": _valid_utf8,
    "error_lines_codes": _error_lines_codes,
    "or_exact_echo": _beside,
    "max_error_lines": _max_error_lines,
    "forbid_ids": _forbid_ids,
    "raw_ids_present": _raw_ids_present,
    "raw_ids_present_or_error_-32600": _raw_ids_or_error,
    "max_lines_after_handshake": _max_lines_after_handshake,
    "batch_reply_ids": _batch_reply_ids,
    "or_error_code": _beside,
    "max_bytes": _max_bytes,
    "max_replies_per_id": _max_replies_per_id,
    "reply_before": _reply_before,
    "no_progress_after_reply_to": _no_progress_after_reply_to,
    "no_subscription_messages_after_cancel": _no_subscription_messages_after_cancel,
    "text_absent": _stdout_text_absent,
}
# Read by the expectation that they relax.
BESIDE_ANOTHER = {"or_exact_echo": "error_lines_codes", "or_error_code": "batch_reply_ids"}


# The process.


def _process(play, wanted):
    engine = play.engine()
    for name, value in wanted.items():
        yield from (f"process: {reason}" for reason in PROCESS[name](engine, value))


def _alive(engine, wanted):
    if engine.alive() != wanted:
        yield f"it ended with exit code {engine.exit_code}" if wanted else "it is still alive"


def _exits_within_ms(engine, most):
    if not engine.exits_within(most):
        yield f"it did not end within {most} ms"


def _exit_code(engine, allowed):
    if engine.exits_within(5000) and engine.exit_code not in allowed:
        yield f"exit code {engine.exit_code}, expected {' or '.join(map(str, allowed))}"


def _max_cpu_ms(engine, most):
    if engine.cpu_ms is None:
        yield "it has not ended, so its processor time is not known"
    elif engine.cpu_ms > most:
        yield f"{engine.cpu_ms:.0f} ms of processor time, at most {most} are allowed"


def _max_rss_growth_mib(engine, most):
    peak = engine.memory("VmHWM")
    if peak is None or engine.rss_at_start is None:
        yield "its memory cannot be measured here"
    elif peak - engine.rss_at_start > most * server.MIB:
        yield f"its memory grew by {(peak - engine.rss_at_start) / server.MIB:.0f} MiB, at most {most} are allowed"


def _max_zombies(engine, most):
    zombies = engine.zombies()
    if zombies is None or zombies > most:
        yield f"{'an unknown number of' if zombies is None else zombies} zombies, at most {most} are allowed"


def _max_open_fds_growth(engine, most):
    now, before = engine.descriptors(), engine.descriptors_at_start
    if now is None or before is None:
        yield "its descriptors cannot be counted here"
    elif now - before > most:
        yield f"{now - before} more descriptors than at the start, at most {most} are allowed"


PROCESS = {
    "alive": _alive,
    "exits_within_ms": _exits_within_ms,
    "exit_code": _exit_code,
    "max_cpu_ms": _max_cpu_ms,
    "max_rss_growth_mib": _max_rss_growth_mib,
    "max_zombies": _max_zombies,
    "max_open_fds_growth": _max_open_fds_growth,
}


# Effects on the world.


def _side_effects(play, wanted):
    for effect in wanted:
        keys = set(effect)
        if keys == {"file_absent"}:
            if Path(effect["file_absent"]).exists():
                yield f"{effect['file_absent']} was made"
        elif keys == {"lines_in_file", "between"}:
            path, (least, most) = Path(effect["lines_in_file"]), effect["between"]
            lines = len(path.read_text().splitlines()) if path.exists() else 0
            if not least <= lines <= most:
                yield f"{path.name} has {lines} lines, expected {least} to {most}"
        elif keys == {"no_process_alive_from_pidfiles", "within_ms"}:
            yield from _ended(play, Path(effect["no_process_alive_from_pidfiles"]), effect["within_ms"])
        else:
            raise Unknown(f"the side effect {wire.short(effect)} is not known")


def _ended(play, path, within_ms):
    if not path.exists():
        yield f"{path.name} was never written: the program did not run"
        return
    pids = [int(word) for word in path.read_text().split()]
    deadline = max(play.cancel_times.values(), default=time.monotonic()) + within_ms / 1000
    while any(map(server.runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    yield from (f"process {pid} of {path.name} is still alive" for pid in pids if server.runs(pid))


def _network(play, wanted):
    _check_keys("network", wanted, {"no_connection_to"})
    if play.guard is None or play.guard.connected():
        yield f"something connected to {wanted['no_connection_to']}"


def _state_file(play, wanted):
    _check_keys("state_file", wanted, {"corrupt_copy_kept", "refused_with"})
    if play.state is None:
        yield "no state file was written"
        return
    if "refused_with" in wanted:
        try:
            play.engine()
            yield "the server starts on a damaged store"
        except server.NotStarted as refused:
            if refused.exit_code != wanted["refused_with"]:
                yield f"refused with exit code {refused.exit_code}, expected {wanted['refused_with']}"
    if wanted.get("corrupt_copy_kept") and not switches.copies(play.state):
        yield "the damaged file was not kept"


def _digest(play, wanted):
    found = play.digests
    for one, other in wanted.get("equal", []):
        if found[one] != found[other]:
            yield f"the digests of {one} and {other} differ"
    for one, other in wanted.get("different", []):
        if found[one] == found[other]:
            yield f"the digests of {one} and {other} are equal"
    for label, text in wanted.get("document", {}).items():
        if found[label] != digests.of_text(text):
            yield f"the digest of {label} is not that of the document {wire.short(text)}"
    if "wire_equals_published" in wanted and play.wire_digest is not None:
        yield play.wire_digest


DIGEST = {"equal", "different", "document", "wire_equals_published"}


def _manual(_play, what):
    yield f"to be judged by hand: {what}"


EXPECTED = {
    "replies": _replies,
    "no_reply": _no_reply,
    "capability_consistency": _capability_consistency,
    "http": _http,
    "stdout": _stdout,
    "process": _process,
    "side_effects": _side_effects,
    "network": _network,
    "state_file": _state_file,
    "digest": _digest,
    "manual": _manual,
}
