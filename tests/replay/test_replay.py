"""The runner of cases: what must fail fails, and says why. `python3 -m unittest discover tests/replay`."""

import base64
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FAKE = ROOT / "tests" / "replay" / "fake"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "conformance"))

from replay import cli, decisions, judge, match, mirror, play, wire  # noqa: E402

NOTHING = wire.ABSENT


def raw(text):
    return wire.parse(text)


# For each matcher: what fits, what does not.
MATCHERS = {
    "$any": ({"$any": [1, {"/a": 2}]}, [1, raw('{"a":2}')], [2, raw('{"a":1}'), True, NOTHING]),
    "$all": ({"$all": [{"$contains": "a"}, {"$re": "b$"}]}, ["ab"], ["a", "b", NOTHING]),
    "$not": ({"$not": "x"}, ["y", NOTHING], ["x"]),
    "$absent": ({"$absent": True}, [NOTHING], [None, "", 0]),
    "$type": ({"$type": "integer"}, [raw("5"), raw("-0")], [raw("5.0"), True, "5", None, NOTHING]),
    "$contains": ({"$contains": 2}, [[1, 2]], [[1, 2.0], [True], "2", NOTHING]),
    "$re": ({"$re": "(?i)^a.c"}, ["ABCd"], ["xabc", 5, NOTHING]),
    "$raw": ({"$raw": "1e3"}, [raw("1e3")], [raw("1000"), raw("1000.0"), raw("1E3"), NOTHING]),
    "$min_length": ({"$min_length": 2}, ["ab", [1, 2]], ["a", [1], 22, NOTHING]),
    "$max_items": ({"$max_items": 1}, [[], [1]], [[1, 2], "a", NOTHING]),
    "$each": ({"$each": {"/t": "x"}}, [[], [{"t": "x"}]], [[{"t": "x"}, {"t": "y"}], "x", NOTHING]),
    "$tool": ({"$tool": {"name": "b", "/v": 1}}, [[{"name": "a"}, {"name": "b", "v": 1}]],
              [[{"name": "b", "v": 2}], [{"name": "a", "v": 1}], {}, NOTHING]),
    "$json_contains": ({"$json_contains": ["é", "b"]}, [{"é": ["b"]}], [{"é": 1}, "b", NOTHING]),
    "$if_sse": ({"$if_sse": [1, 2]}, [2], [1, NOTHING]),
    "$if_sessions": ({"$if_sessions": [1, 2]}, [2], [1, NOTHING]),
    "$csv_has_ci": ({"$csv_has_ci": ["B", "a"]}, ["A, b", "a,b,c"], ["a", "ab", NOTHING]),
}


class Matchers(unittest.TestCase):
    def test_each_has_what_fits_and_what_does_not(self):
        self.assertEqual(set(MATCHERS), set(match.MATCHERS))
        for name, (matcher, good, bad) in MATCHERS.items():
            for value in good:
                self.assertIsNone(match.mismatch(matcher, value), (name, value))
            for value in bad:
                self.assertTrue(match.mismatch(matcher, value), (name, value))

    def test_a_condition_chooses_its_branch(self):
        stream = match.Setting(sse=True, sessions=lambda: True)
        for name in ("$if_sse", "$if_sessions"):
            self.assertIsNone(match.mismatch({name: [1, 2]}, 1, stream))
            self.assertTrue(match.mismatch({name: [1, 2]}, 2, stream))
            self.assertTrue(match.mismatch({name: 1}, 2, stream))
            self.assertIsNone(match.mismatch({name: 1}, 2))

    def test_a_literal_is_compared_with_its_type_and_as_a_whole(self):
        for expected, actual in ((1, True), (1, 1.0), ("1", 1), (None, NOTHING), ({}, {"a": 1}), ([1], [1, 2])):
            self.assertTrue(match.mismatch(expected, actual), (expected, actual))
        self.assertIsNone(match.mismatch({"a": [1, None]}, raw('{"a":[1,null]}')))

    def test_pointers_reach_into_members_and_items(self):
        value = raw('{"a/b":[{"c~d":5}]}')
        self.assertIsNone(match.mismatch({"/a~1b/0/c~0d": 5, "/a~1b/1": {"$absent": True}}, value))
        self.assertIn("/a~1b/0/c~0d", match.mismatch({"/a~1b/0/c~0d": 6}, value))

    def test_an_unknown_one_is_no_pass(self):
        for matcher in ({"$gues": 1}, {"$not": {"$gues": 1}}, {"$type": "int"}):
            with self.assertRaises(match.Unknown):
                match.mismatch(matcher, 1)

    def test_a_status_can_depend_on_another(self):
        listed = [200, {"$if": ["i=404", [404], [500]]}]
        self.assertEqual(match.statuses(listed, lambda label: {"i": 404}[label]), [200, 404])
        self.assertEqual(match.statuses(listed, lambda label: {"i": 200}[label]), [200, 500])
        with self.assertRaises(match.Unknown):
            match.statuses(["200"], None)


class Reading(unittest.TestCase):
    def test_values_keep_their_text(self):
        value = raw(' {"a": [1.50, 98765432109876543210], "b":"\\u0041"} ')
        self.assertEqual([wire.raw(item) for item in value["a"]], ["1.50", "98765432109876543210"])
        self.assertEqual((value["b"], wire.raw(value["b"])), ("A", '"\\u0041"'))

    def test_what_is_no_json_is_refused(self):
        for text in ("", "{", '{"a":1,"a":2}', "[1,]", "01", "nul", '"\\ud800"', "1 2", "NaN", "'a'", "[" * 5000):
            with self.assertRaises(ValueError, msg=text[:20]):
                raw(text)


def message(number, **rest):
    return json.dumps({"jsonrpc": "2.0", "id": number, **(rest or {"result": {}})}).encode() + b"\n"


def error(code, **rest):
    return json.dumps({"jsonrpc": "2.0", **rest, "error": {"code": code, "message": "m"}}).encode() + b"\n"


def notice(method, **params):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"


TAG = {"_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
ACKNOWLEDGED = notice("notifications/subscriptions/acknowledged", **TAG)
CHANGED = notice("notifications/tools/list_changed", **TAG)
# For each expectation of standard output: its value, what fits, what does not (each an answer to `send`).
STDOUT = {
    "only_jsonrpc_lines": (True, message(1), [b"log\n", b'{"id":1}\n', message(1) + b"{", b"\n", b"[]\n",
                                              b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}\n']),
    "no_cr": (True, message(1), [message(1)[:-1] + b"\r\n"]),
    "no_bom": (True, message(1), [b"\xef\xbb\xbf" + message(1)]),
    "one_message_per_line": (True, message(1), [message(1)[:-1] + message(1), b"[" + message(1)[:-1] + b"]\n"]),
    "valid_utf8": (True, message(1), [b'"\xff"\n']),
    "error_lines_codes": ([-32600], error(-32600) + message(1), [error(-32700), error(-32603, id=None)]),
    "max_error_lines": (1, error(-1), [error(-1) * 2]),
    "forbid_ids": ([True, {"a": 1}], message(1), [message(True), message({"a": 1})]),
    "raw_ids_present": (["1e3"], b'{"jsonrpc":"2.0","id":1e3,"result":1}\n', [message(1000), message("1e3")]),
    "raw_ids_present_or_error_-32600": (["99", "98"], message(99) + error(-32600), [message(99), error(-32700) * 2]),
    "max_lines_after_handshake": (1, message(1) * 2, [message(1) * 3, message(1) * 2 + b"x"]),
    "batch_reply_ids": ([2, 3], b"[" + message(3)[:-1] + b"," + message(2)[:-1] + b"]\n", [message(2) + message(3)]),
    "max_bytes": (50, message(1), [message(1) * 2]),
    "max_replies_per_id": (1, message(1) + message("1"), [message(1) * 2]),
    "reply_before": ([[2, 1]], message(2) + message(1), [message(1) + message(2), message(1)]),
    "no_progress_after_reply_to": (1, notice("notifications/progress", progressToken="t") + message(1),
                                   [message(1) + notice("notifications/progress", progressToken="t")]),
    "no_subscription_messages_after_cancel": (1, ACKNOWLEDGED, [b"", CHANGED, error(-32603, id=1)]),
    "text_absent": (["secret"], message(1), [message(1, result="a secret")]),
}
# What these count depends on the steps; each has a test of its own.
OF_STEPS = {"max_lines_after_handshake", "no_subscription_messages_after_cancel"}


def case(steps, expect, says, transport="stdio", tools=(), **more):
    made = [{"name": "say", "argv": [base64.b64encode(said).decode() for said in says]}]
    made += [{"name": name, "argv": [value]} for name, value in tools]
    return {"id": "c", "transport": transport, "fixture": {"tools": made}, "steps": steps, "expect": expect, **more}


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": {"progressToken": "t"}}}
AWAIT = {"await_reply": 1, "timeout_ms": 3000}


class Fakes(unittest.TestCase):
    def reasons(self, given):
        return cli.run(given, FAKE)["reasons"]

    def passes(self, given):
        self.assertEqual(self.reasons(given), [])

    def fails(self, given, reason):
        reasons = self.reasons(given)
        self.assertTrue(any(reason in said for said in reasons), (reason, reasons))

    def said(self, said, expect):
        last = message("last")
        ended = {"replies": [{"id": "last", "match": {"/id": "last"}}], **expect}
        return case([{"send": CALL}, {"send": {"id": "last"}}, {"await_reply": "last", "timeout_ms": 3000}],
                    ended, [said, last] if said.endswith(b"\n") or not said else [b"", last + said])


class StandardOutput(Fakes):
    def test_each_expectation_has_what_fits_and_what_does_not(self):
        self.assertEqual({*STDOUT, *judge.BESIDE_ANOTHER}, set(judge.STDOUT))
        for name, (value, good, bad) in STDOUT.items():
            with self.subTest(name):
                if name in OF_STEPS:
                    continue
                room = {"max_bytes": 50 + len(message("last"))}.get(name, value)
                self.passes(self.said(good, {"stdout": {name: room}}))
                for said in bad:
                    self.fails(self.said(said, {"stdout": {name: room}}), "stdout: ")

    def test_lines_after_the_handshake_are_counted(self):
        value, good, bad = STDOUT["max_lines_after_handshake"]
        expect = {"stdout": {"max_lines_after_handshake": value}}
        steps = [{"send": CALL}, AWAIT, {"send": CALL}, {"sleep_ms": 200}]
        lines = lambda said: [message(1), said.removeprefix(message(1))]  # noqa: E731
        self.passes(case(steps, expect, lines(good)))
        for said in bad:
            self.fails(case(steps, expect, lines(said)), "lines after the handshake")

    def test_what_relaxes_another_expectation_lets_pass_no_more_than_it_says(self):
        echo = {"stdout": {"error_lines_codes": [-32600], "or_exact_echo": ["1.5"]}}
        self.passes(self.said(b'{"jsonrpc":"2.0","id":1.5,"result":1}\n', echo))
        self.fails(self.said(b'{"jsonrpc":"2.0","id":1.50,"result":1}\n', echo), "1.50")
        batch = {"stdout": {"batch_reply_ids": [2], "or_error_code": -32600}}
        self.passes(self.said(error(-32600), batch))
        self.fails(self.said(error(-32700), batch), "no array")

    def test_a_message_after_the_cancel_is_seen(self):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        steps = [{"send": CALL}, {"sleep_ms": 200}, {"send": cancel}, {"sleep_ms": 200}]
        expect = {"stdout": {"no_subscription_messages_after_cancel": 1}}
        self.passes(case(steps, expect, [ACKNOWLEDGED, message(1)]))
        self.fails(case(steps, expect, [ACKNOWLEDGED, CHANGED]), "after the cancel")

    def test_replies_are_found_by_typed_id_and_compared(self):
        steps = [{"send": CALL}, {"await_reply": 1, "timeout_ms": 200}]
        expect = {"replies": [{"id": 1, "match": {"/result": 5}}]}
        self.passes(case(steps, expect, [message(1, result=5)]))
        self.fails(case(steps, expect, [message(1, result=6)]), "reply to 1: /result: expected 5, got 6")
        self.fails(case(steps, expect, [message("1", result=5)]), "no reply to 1 within 200 ms")
        self.fails(case(steps, {"no_reply": [1]}, [message(1)]), "must have no reply")
        instead = {"replies": [{"id": 1, "match": {"/result": 5}, "or_error_line": [-32700]}]}
        self.passes(case(steps, instead, [error(-32700)]))
        self.fails(case(steps, instead, [error(-32600)]), "no reply to 1")
        self.fails(case(steps, {}, [b""]), "no reply to 1 within 200 ms")

    def test_what_is_declared_and_what_is_answered_are_compared(self):
        steps = [{"send": CALL}, {"send": CALL}, {"await_reply": 2, "timeout_ms": 3000}]
        expect = {"capability_consistency": {"2": "tools.list"}}
        declares = lambda what: message(1, result={"capabilities": what})  # noqa: E731
        self.passes(case(steps, expect, [declares({}), error(-32601, id=2)]))
        self.passes(case(steps, expect, [declares({"tools": {"list": True}}), error(-32602, id=2)]))
        self.fails(case(steps, expect, [declares({}), message(2)]), "is not declared")
        self.fails(case(steps, expect, [declares({"tools": {"list": True}}), error(-32601, id=2)]), "is declared")


class Processes(Fakes):
    def test_each_expectation_has_what_fits_and_what_does_not(self):
        end = [{"send": CALL}, {"sleep_ms": 100}, {"close_stdin": True}]
        stay = [{"send": CALL}, {"sleep_ms": 100}]
        checked = set()
        for steps, name, good, bad, tools in (
            (stay, "alive", True, False, ()),
            (end, "exits_within_ms", 5000, 0, ()),
            (end, "exit_code", [7], [0, 1], [("exit", "7")]),
            (end, "max_cpu_ms", 5000, 0, ()),
            (stay, "max_rss_growth_mib", 64, -1, ()),
            (stay, "max_zombies", 0, -1, ()),
            (stay, "max_open_fds_growth", 0, -1, ()),
        ):
            checked.add(name)
            room = {"exits_within_ms": 5000} if name == "max_cpu_ms" else {}
            self.passes(case(steps, {"process": {**room, name: good}}, [b"x\n"], tools=tools))
            self.fails(case(steps, {"process": {**room, name: bad}}, [b"x\n"], tools=tools), "process: ")
        self.assertEqual(checked, set(judge.PROCESS))

    def test_one_that_died_or_stays_is_told(self):
        dead = case([{"send": CALL}, {"sleep_ms": 200}], {"process": {"alive": True}}, [b"x\n"],
                    tools=[("die", ""), ("exit", "9")])
        self.fails(dead, "ended with exit code 9")
        stays = case([{"send": CALL}, {"close_stdin": True}], {"process": {"exits_within_ms": 300}}, [b"x\n"],
                     tools=[("stay", "")])
        self.fails(stays, "did not end within 300 ms")

    def test_effects_are_looked_for(self):
        steps = [{"touch": "$TMP/f"}, {"send": CALL}]
        for effect, reason in (
            ({"file_absent": "$TMP/g"}, None),
            ({"file_absent": "$TMP/f"}, "was made"),
            ({"lines_in_file": "$TMP/f", "between": [0, 1]}, None),
            ({"lines_in_file": "$TMP/f", "between": [1, 2]}, "0 lines"),
            ({"no_process_alive_from_pidfiles": "$TMP/f", "within_ms": 1}, None),
            ({"no_process_alive_from_pidfiles": "$TMP/g", "within_ms": 1}, "never written"),
            ({"no_process_alive_from_pidfiles": "/proc/sys/kernel/ns_last_pid", "else": 1}, "is not known"),
        ):
            given = case(steps, {"side_effects": [effect]}, [b"x\n"])
            self.fails(given, reason) if reason else self.passes(given)


def answer(status=200, body=b"{}", length=True, **headers):
    head = [f"HTTP/1.1 {status} X"] + [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head += [f"content-length: {len(body)}"] if length else []
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def stream(*values):
    body = b"".join(b"id: e%d\ndata: %s\n\n" % (at, json.dumps(value).encode()) for at, value in enumerate(values))
    return answer(body=body, length=False, content_type="text/event-stream")


# For each expectation of an HTTP answer: its value, what fits, what does not.
HTTP = {
    "status": ([200, 404], answer(404), [answer(500)]),
    "headers": ({"a": "1", "b": {"$absent": True}}, answer(A="1"), [answer(a="2"), answer(a="1", b="1"), answer()]),
    "body": ({"/a": 1}, answer(body=b'{"a":1}'), [answer(body=b'{"a":2}'), answer(body=b"x"), answer(body=b"")]),
    "first_event": ({"/a": 1}, stream({"a": 1}, {"a": 2}), [stream({"a": 2}, {"a": 1}), stream()]),
    "body_empty": (True, answer(202, b""), [answer(202, b"{}")]),
    "text_absent": (["victim"], answer(body=b'"x"'), [answer(body=b'"a victim"'), answer(h="victim")]),
    "no_events_with_id": ([2], stream({"id": 1}), [stream({"id": 1}, {"id": 2})]),
    "sse_max_silence_ms": (5000, stream({"a": 1}), [answer()]),
    "connection_closed": (True, answer(), []),
    "no_chunked": (True, answer(), [answer(body=b"0\r\n\r\n", length=False, transfer_encoding="chunked")]),
}


class Answers(Fakes):
    def asked(self, expect, said, **more):
        step = {"http": {"method": "POST", "path": "/mcp", "body": {}, "read_ms": 2000}, "label": "a"}
        return case([step], {"http": [{"label": "a", **expect}]}, [said], "http", **more)

    def test_each_expectation_has_what_fits_and_what_does_not(self):
        self.assertEqual(set(HTTP), set(judge.HTTP))
        for name, (value, good, bad) in HTTP.items():
            with self.subTest(name):
                self.passes(self.asked({name: value}, good))
                for said in bad:
                    self.fails(self.asked({name: value}, said), "a: ")

    def test_a_connection_that_stays_open_and_an_answer_that_does_not_end_are_seen(self):
        kept = self.asked({"connection_closed": False}, answer(), tools=[("keep", "")])
        self.passes(kept)
        self.fails(self.asked({"connection_closed": False}, answer()), "closed the connection")
        cut = answer(body=b"{}").replace(b"content-length: 2", b"content-length: 9")
        self.fails(self.asked({"status": [200]}, cut), "did not end")
        self.fails(self.asked({"status": [200]}, b"nonsense\r\n\r\n"), "not HTTP")

    def test_the_last_message_of_a_stream_is_its_body(self):
        self.passes(self.asked({"body": {"/a": 2}}, stream({"a": 1}, {"a": 2})))
        self.fails(self.asked({"body": {"/a": 1}}, stream({"a": 1}, {"a": 2})), "expected 1, got 2")

    def test_what_a_header_captured_goes_into_later_requests(self):
        post = lambda label, **headers: {  # noqa: E731
            "http": {"method": "POST", "path": "/mcp", "headers": headers, "body": "x"}, "label": label}
        steps = [{**post("i"), "capture": {"SID": "header:mcp-session-id"}}, post("l", s="$SID", o="$SID_OF_i")]
        expect = {"http": [{"label": "l", "status": [200]}]}
        self.passes(case(steps, expect, [answer(mcp_session_id="abc"), answer()], "http"))
        self.fails(case([post("l", s="$NOBODY")], expect, [answer()], "http"), "$NOBODY is not known")

    def test_a_silent_stream_is_seen(self):
        said = self.asked({"sse_max_silence_ms": 100}, stream({"a": 1}), tools=[("keep", "")])
        said["steps"][0]["http"]["read_ms"] = 400
        self.fails(said, "was silent for")

    def test_headers_mirror_the_body_of_a_modern_message(self):
        schema = {"t": {"properties": {"r": {"x-mcp-header": "Region"}, "o": {"properties": {"n": {"x-mcp-header": "N"}}}}}}
        params = {"name": "t", "arguments": {"r": "ä", "o": {"n": 5}}, "_meta": {"io.modelcontextprotocol/protocolVersion": "v"}}
        sent = dict(mirror.headers({"method": "tools/call", "params": params}, "sid", "old", schema))
        self.assertEqual((sent["mcp-name"], sent["mcp-method"], sent["mcp-protocol-version"]), (b"t", b"tools/call", b"v"))
        self.assertEqual((sent["mcp-param-Region"], sent["mcp-param-N"]), (b"=?base64?w6Q=?=", b"5"))
        self.assertNotIn("mcp-session-id", sent)
        legacy = dict(mirror.headers({"method": "ping"}, "sid", "old", {}))
        self.assertEqual((legacy["mcp-session-id"], legacy["mcp-protocol-version"]), (b"sid", b"old"))


class Unknowns(Fakes):
    def test_what_is_not_known_fails_the_case(self):
        for steps, expect, reason in (
            ([{"sned": 1}], {}, "the step"),
            ([{"send": CALL, "lable": "a"}], {}, "unknown key 'lable'"),
            ([{"http": {"path": "/", "hedaers": {}}}], {}, "unknown key 'hedaers'"),
            ([{"send": CALL}], {"repiles": []}, "'repiles' is not known"),
            ([{"send": CALL}], {"stdout": {"no_lf": True}}, "unknown key 'no_lf'"),
            ([{"send": CALL}], {"process": {"max_threads": 1}}, "unknown key 'max_threads'"),
            ([{"send": CALL}], {"replies": [{"id": 1, "match": {"": {"$any": [{"$maybe": 1}]}}}]}, "'$maybe'"),
            ([{"send": CALL}], {"side_effects": [{"file_there": "x"}]}, "is not known"),
            ([{"config": "make it fast"}], {}, "no switch"),
            ([{"spawn": {"nice": 5}}], {}, "spawn does not know nice"),
            ([{"stdout_reader": "slow"}], {}, "does not know 'slow'"),
            ([{"manual": "look at it"}], {"manual": "it is blue"}, "by hand only: look at it"),
            ([{"write_state_file": {"variants": [""]}}], {}, "no option --state"),
            ([{"join": "x"}], {}, "names no earlier step"),
            ([{"send_b64": "***"}], {}, "not understood"),
        ):
            with self.subTest(reason):
                self.fails(case(steps, expect, [b"x\n"]), reason)

    def test_digests_are_compared(self):
        steps = [{"digest": {"label": label, "tools_json": text}} for label, text in (("a", "1"), ("b", "1"), ("c", "2"))]
        good = {"equal": [["a", "b"]], "different": [["a", "c"]], "document": {"a": "1"}}
        self.passes(case(steps, {"digest": good}, [], "offline"))
        for bad in ({"equal": [["a", "c"]]}, {"different": [["a", "b"]]}, {"document": {"a": "2"}}):
            self.fails(case(steps, {"digest": bad}, [], "offline"), "digest")


class Command(unittest.TestCase):
    def run_cases(self, text, *arguments, binary=FAKE):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "c.jsonl"
            file.write_text(text)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.main([str(file), "--binary", str(binary), *arguments])
            return code, out.getvalue().replace(folder + "/", ""), err.getvalue()

    def lines(self):
        steps = [{"send": CALL}, AWAIT]
        good = case(steps, {"replies": [{"id": 1, "match": {"/result": {}}}]}, [message(1)])
        bad = {**case(steps, {"replies": [{"id": 1, "match": {"/result": 1}}]}, [message(1)]), "id": "d"}
        return json.dumps(good) + "\n" + json.dumps(bad) + "\n"

    def test_a_failing_case_is_one_line_with_its_reason_and_the_sum_is_last(self):
        code, out, _ = self.run_cases(self.lines())
        self.assertEqual((code, out), (1, "d failed: reply to 1: /result: expected 1, got {}\n1 passed, 1 failed\n"))
        self.assertEqual(self.run_cases(self.lines(), "--only", "c"), (0, "1 passed, 0 failed\n", ""))

    def test_json_holds_what_the_lines_say(self):
        code, out, _ = self.run_cases(self.lines(), "--json")
        said = json.loads(out)
        self.assertEqual((code, said["passed"], said["failed"]), (1, 1, 1))
        self.assertEqual([bool(one["reasons"]) for one in said["cases"]], [False, True])

    def test_a_malformed_line_is_named_and_fails(self):
        for bad, reason in (
            ("{", "c.jsonl:3 failed: not JSON"),
            ("[]", "c.jsonl:3 failed: a case is a JSON object"),
            ('{"id":"x","steps":[],"expect":{}}', "c.jsonl:3 failed: a case has 'transport'"),
            ('{"id":"x","transport":"fax","steps":[],"expect":{}}', "'fax' is not known"),
            (self.lines().split("\n")[0], "the id c stands twice"),
        ):
            code, out, _ = self.run_cases(self.lines() + bad + "\n")
            self.assertEqual(code, 1)
            self.assertIn(reason, out)
            self.assertTrue(out.endswith("1 passed, 2 failed\n"), out)

    def test_where_nothing_can_run_it_says_why_and_how_to_mend_it(self):
        for text, arguments, binary, reason in (
            ("", (), FAKE, "it is empty"),
            ("{\n", (), FAKE, "c.jsonl:1: not JSON"),
            (self.lines(), ("--only", "zzz"), FAKE, "no case is called zzz"),
            (self.lines(), (), "/nowhere/twodoor", "name an executable with --binary"),
        ):
            code, out, err = self.run_cases(text, *arguments, binary=binary)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(reason, err)
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(cli.main(["/nowhere/c.jsonl", "--binary", str(FAKE)]), 2)
        self.assertIn("cannot be read", err.getvalue())


class OwnCases(unittest.TestCase):
    """conformance/cases.d plays each kind of step, matcher and expectation at least once."""

    # Judged by hand alone; needs a store, which `serve` does not have.
    NOT_PLAYED = {"manual", "write_state_file"}
    NOT_EXPECTED = {"manual", "state_file"}

    def setUp(self):
        files = sorted((ROOT / "conformance" / "cases.d").glob("*.jsonl"))
        self.cases = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        self.words = set()
        self.collect([case["expect"] for case in self.cases])

    def collect(self, value):
        if isinstance(value, dict):
            self.words.update(value)
            value = list(value.values())
        for inner in value if isinstance(value, list) else []:
            self.collect(inner)

    def test_every_step_is_played(self):
        played = {key for case in self.cases for step in play.walk(case["steps"]) for key in step}
        wanted = {*play.STEPS, *(key for keys in play.MODIFIERS.values() for key in keys)}
        self.assertEqual(wanted - played, self.NOT_PLAYED)
        http = {key for case in self.cases for step in play.walk(case["steps"]) for key in step.get("http", {})}
        self.assertEqual(http, play.HTTP_KEYS)

    def test_every_word_of_an_expectation_is_used(self):
        wanted = {*judge.EXPECTED, *judge.HTTP, *judge.STDOUT, *judge.PROCESS, *judge.DIGEST, *match.MATCHERS, "$if"}
        self.assertEqual(wanted - self.words, self.NOT_EXPECTED)
        self.assertEqual({case["transport"] for case in self.cases}, set(cli.WAYS))

    def test_what_is_decided_differently_stands_in_the_architecture_page(self):
        page = (ROOT / "ARCHITECTURE.md").read_text()
        for name, decision in decisions.DECISIONS.items():
            self.assertIn(f"`{name}`", page)
            self.assertTrue(decision["reason"])


if __name__ == "__main__":
    unittest.main()
