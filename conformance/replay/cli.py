"""`conformance/cases`: reads a file of cases, plays them, says which fail and why."""

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from . import server, wire
from .decisions import decided
from .fixture import Refused
from .judge import judge
from .match import Unknown
from .play import Play, walk
from .switches import CannotDo

ROOT = Path(__file__).resolve().parent.parent.parent
NEEDED = {"id": str, "transport": str, "steps": list, "expect": dict}
WAYS = {"stdio": ["stdio"], "http": ["http"], "both": ["stdio", "http"], "offline": ["stdio"]}
NOTHING_RAN = 2


class Unusable(Exception):
    """Nothing can be run: what is wrong, and how to mend it."""


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        binary = find_binary(options.binary)
        cases, malformed = read(options.file)
        if options.only:
            cases = select(cases, options.only)
            malformed = []
    except Unusable as problem:
        print(f"cases: {problem}", file=sys.stderr)
        return NOTHING_RAN
    results = [{"id": where, "title": "", "reasons": [why], "ms": 0} for where, why in malformed]
    for result in results:
        show(result, options)
    for case in cases:
        result = run(case, binary)
        results.append(result)
        show(result, options)
    failed = sum(1 for result in results if result["reasons"])
    summary = f"{len(results) - failed} passed, {failed} failed"
    if options.json:
        print(json.dumps({"passed": len(results) - failed, "failed": failed, "cases": results}, ensure_ascii=False))
        print(summary, file=sys.stderr)
    else:
        print(summary)
    return 1 if failed else 0


def parser():
    made = argparse.ArgumentParser(
        prog="cases",
        description="Replays cases against a built twodoor and says which fail and why.",
        epilog="Exit codes: 0 all passed, 1 some failed, 2 nothing could be run. The format: conformance/README.md",
    )
    made.add_argument("file", metavar="FILE.jsonl", help="the cases, one JSON object a line")
    made.add_argument("--binary", metavar="PATH", help="the twodoor to test (default: the debug build)")
    made.add_argument("--only", metavar="ID,..", help="play these cases alone")
    made.add_argument("-v", "--verbose", action="store_true", help="name the cases that passed, and decisions, too")
    made.add_argument("--json", action="store_true", help="print one JSON object instead")
    return made


def find_binary(given):
    path = Path(given) if given else Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug" / "twodoor"
    if not path.is_file() or not os.access(path, os.X_OK):
        remedy = "name an executable with --binary" if given else "run `cargo build`, or name one with --binary"
        raise Unusable(f"there is no twodoor at {path}: {remedy}")
    return path.resolve()


def read(file):
    """The cases of a file, and (place, problem) for each line that is none."""
    try:
        text = Path(file).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{file} cannot be read: {error}; expected a UTF-8 file with one case a line") from None
    cases, malformed, seen = [], [], set()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        problem, case = None, None
        try:
            case = json.loads(line)
            problem = shape(case, seen)
        except (ValueError, RecursionError) as error:
            problem = f"not JSON: {error}"
        if problem:
            malformed.append((f"{file}:{number}", problem))
        else:
            seen.add(case["id"])
            cases.append(case)
    if not cases:
        found = "; ".join(f"{where}: {why}" for where, why in malformed[:5])
        raise Unusable(f"{file} has no case that can be played: {found or 'it is empty'}; expected one JSON object a line")
    return cases, malformed


def shape(case, seen):
    """What is wrong with a case's form, or None."""
    if not isinstance(case, dict):
        return "a case is a JSON object"
    for key, kind in NEEDED.items():
        if not isinstance(case.get(key), kind):
            return f"a case has {key!r}, which is {'a text' if kind is str else 'a list' if kind is list else 'an object'}"
    if case["transport"] not in WAYS:
        return f"the transport {case['transport']!r} is not known: expected one of {', '.join(WAYS)}"
    if not all(isinstance(step, dict) for step in case["steps"]):
        return "each step is an object"
    if case["id"] in seen:
        return f"the id {case['id']} stands twice"
    return None


def select(cases, only):
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    missing = sorted(set(wanted) - {case["id"] for case in cases})
    if missing or not wanted:
        raise Unusable(f"no case is called {', '.join(missing) or repr(only)}: --only takes ids of the file")
    return [case for case in cases if case["id"] in wanted]


def ways(case):
    """How a case is played: (over, variant)."""
    steps = list(walk(case["steps"]))
    overs = WAYS[case["transport"]]
    if case["transport"] == "both" and any("http" in step or "tcp" in step for step in steps):
        overs = ["http"]
    variants = max((len(step["write_state_file"]["variants"]) for step in steps if "write_state_file" in step), default=1)
    return [(over, variant) for over in overs for variant in range(variants)]


def run(given, binary):
    """Plays a case in all its ways; what failed, each reason once."""
    began = time.monotonic()
    case, decision = decided(given)
    reasons = []
    try:
        played = ways(case)
        for over, variant in played:
            prefix = f"over {over}: " if len({over for over, _ in played}) > 1 else ""
            prefix += f"variant {variant + 1}: " if variant else ""
            found = play(case, binary, over, variant)
            # What already fails the first variant is said once.
            reasons += [prefix + reason for reason in found if not (variant and reason in reasons)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reasons.append(f"the case is not understood: {type(error).__name__}: {error}")
    reasons = list(dict.fromkeys(reasons))
    result = {"id": given["id"], "title": given.get("title", ""), "reasons": reasons}
    if decision:
        result["decision"] = decision["reason"]
    return {**result, "ms": round((time.monotonic() - began) * 1000)}


def play(case, binary, over, variant):
    """The reasons why one way of playing a case fails."""
    with tempfile.TemporaryDirectory(prefix="twodoor-case-") as folder:
        with Guard(case) as (case, guard):
            playing = None
            try:
                playing = Play(case, binary, over, Path(folder), variant)
                playing.guard = guard
                playing.run()
                return [*playing.failures, *judge(playing), *refusals(playing)]
            except (Unknown, CannotDo, Refused, server.NotStarted) as stopped:
                return [*(playing.failures if playing else []), str(stopped)]
            except OSError as error:
                return [f"the case could not be played: {error}"]
            finally:
                if playing is not None:
                    playing.end()


def refusals(playing):
    """Fixture tools that a decision has refused, and were not, or for another reason."""
    for name, rule in playing.case.get("refused", {}).items():
        found = playing.fixture.refused.get(name)
        if found is None:
            yield f"the surface takes the tool {name}, expected a refusal by {rule}"
        elif rule not in found:
            yield f"the tool {name} is refused by {', '.join(found)}, expected {rule}"


class Guard:
    """A listener in place of the address that nobody may connect to."""

    def __init__(self, case):
        self.case = case
        self.wanted = case["expect"].get("network", {}).get("no_connection_to")

    def __enter__(self):
        if self.wanted is None:
            return self.case, None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0.2)
        address = "%s:%d" % self.listener.getsockname()
        return json.loads(json.dumps(self.case).replace(self.wanted, address)), self

    def __exit__(self, *_):
        if self.wanted is not None:
            self.close()

    def connected(self):
        try:
            self.listener.accept()[0].close()
            return True
        except TimeoutError:
            return False

    def close(self):
        self.listener.close()


def show(result, options):
    if options.json:
        return
    decision = f" [decided: {result['decision']}]" if options.verbose and "decision" in result else ""
    if result["reasons"]:
        print(f"{result['id']} failed: {'; '.join(result['reasons'])}{decision}", flush=True)
    elif options.verbose:
        print(f"{result['id']} passed, {result['ms']} ms: {result['title']}{decision}", flush=True)
