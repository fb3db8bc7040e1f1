"""Matchers: what a case expects of a JSON value. Each has one function that names what is wrong, or nothing."""

import json
import re

from .wire import ABSENT, find, kind, raw, same, short


class Unknown(Exception):
    """The case asks for something that this runner does not know: a failure, never a pass."""


class Setting:
    """What matchers may ask about the reply and its server."""

    def __init__(self, sse=False, sessions=lambda: False):
        self.sse = sse
        self.sessions = sessions


def mismatch(expected, actual, setting=None, where=""):
    """Why a value does not fit, or None."""
    setting = setting or Setting()
    if isinstance(expected, dict) and expected:
        keys = list(expected)
        if all(key == "" or key.startswith("/") for key in keys):
            reasons = (mismatch(expected[key], find(actual, key), setting, where + key) for key in keys)
            return next(filter(None, reasons), None)
        if any(key.startswith("$") for key in keys):
            for key in keys:
                if key not in MATCHERS:
                    raise Unknown(f"the matcher {key} is not known")
            reasons = (MATCHERS[key](expected[key], actual, setting, where) for key in keys)
            return next(filter(None, reasons), None)
    return None if same(expected, actual) else differs(f"{short(expected)}", actual, where)


def differs(wanted, actual, where):
    return f"{where or 'the whole'}: expected {wanted}, got {short(actual)}"


def _any(options, actual, setting, where):
    reasons = [mismatch(option, actual, setting, where) for option in options]
    return None if None in reasons else differs(f"one of {json.dumps(options)}", actual, where)


def _all(parts, actual, setting, where):
    reasons = [mismatch(part, actual, setting, where) for part in parts]
    return next(filter(None, reasons), None)


def _not(refused, actual, setting, where):
    fits = mismatch(refused, actual, setting, where) is None
    return differs(f"anything but {json.dumps(refused)}", actual, where) if fits else None


def _absent(wanted, actual, _setting, where):
    return None if (actual is ABSENT) == wanted else differs("nothing" if wanted else "something", actual, where)


def _type(name, actual, _setting, where):
    if name not in ("null", "boolean", "integer", "number", "string", "array", "object"):
        raise Unknown(f"the type {name!r} is not known")
    fits = kind(actual) == name or (name == "number" and kind(actual) == "integer")
    return None if fits else differs(f"a value of type {name}", actual, where)


def _contains(part, actual, setting, where):
    if isinstance(actual, str):
        fits = isinstance(part, str) and part in actual
    else:
        fits = isinstance(actual, list) and any(mismatch(part, item, setting) is None for item in actual)
    return None if fits else differs(f"something that contains {short(part)}", actual, where)


def _re(pattern, actual, _setting, where):
    fits = isinstance(actual, str) and re.search(pattern, actual)
    return None if fits else differs(f"a text that matches {pattern}", actual, where)


def _raw(text, actual, _setting, where):
    fits = actual is not ABSENT and raw(actual) == text
    return None if fits else differs(f"exactly the JSON text {text}", actual, where)


def _min_length(least, actual, _setting, where):
    fits = isinstance(actual, (str, list)) and len(actual) >= least
    return None if fits else differs(f"a length of at least {least}", actual, where)


def _max_items(most, actual, _setting, where):
    fits = isinstance(actual, list) and len(actual) <= most
    return None if fits else differs(f"at most {most} items", actual, where)


def _each(part, actual, setting, where):
    if not isinstance(actual, list):
        return differs("an array", actual, where)
    reasons = (mismatch(part, item, setting, f"{where}/{at}") for at, item in enumerate(actual))
    return next(filter(None, reasons), None)


def _tool(part, actual, setting, where):
    rest = {key: value for key, value in part.items() if key != "name"}
    for tool in actual if isinstance(actual, list) else []:
        if isinstance(tool, dict) and same(tool.get("name", ABSENT), part["name"]):
            return mismatch(rest, tool, setting, f"{where}[{part['name']}]") if rest else None
    return differs(f"a tool named {part['name']}", actual, where)


def _json_contains(parts, actual, _setting, where):
    if actual is ABSENT:
        return differs(f"JSON that contains {short(parts)}", actual, where)
    text = json.dumps(actual, ensure_ascii=False)
    missing = [part for part in parts if part not in text]
    return differs(f"JSON that contains {short(missing)}", actual, where) if missing else None


def _csv_has_ci(words, actual, _setting, where):
    listed = {word.strip().lower() for word in actual.split(",")} if isinstance(actual, str) else set()
    missing = [word for word in words if word.lower() not in listed]
    return differs(f"a list with {', '.join(missing)}", actual, where) if missing else None


def _if_sse(part, actual, setting, where):
    return _choose(setting.sse, part, actual, setting, where)


def _if_sessions(part, actual, setting, where):
    return _choose(setting.sessions(), part, actual, setting, where)


def _choose(holds, part, actual, setting, where):
    """`[if so, if not]`, or one matcher for the first alone."""
    if isinstance(part, list):
        return mismatch(part[0 if holds else 1], actual, setting, where)
    return mismatch(part, actual, setting, where) if holds else None


MATCHERS = {
    "$any": _any,
    "$all": _all,
    "$not": _not,
    "$absent": _absent,
    "$type": _type,
    "$contains": _contains,
    "$re": _re,
    "$raw": _raw,
    "$min_length": _min_length,
    "$max_items": _max_items,
    "$each": _each,
    "$tool": _tool,
    "$json_contains": _json_contains,
    "$if_sse": _if_sse,
    "$if_sessions": _if_sessions,
    "$csv_has_ci": _csv_has_ci,
}


def statuses(listed, status_of):
    """The statuses that `status` allows; `{"$if": ["LABEL=STATUS", [if so], [if not]]}` looks at another reply."""
    allowed = []
    for item in listed:
        if isinstance(item, int):
            allowed.append(item)
        elif isinstance(item, dict) and list(item) == ["$if"]:
            condition, so, otherwise = item["$if"]
            label, _, status = condition.partition("=")
            allowed.extend(so if status_of(label) == int(status) else otherwise)
        else:
            raise Unknown(f"the status {short(item)} is not known")
    return allowed
