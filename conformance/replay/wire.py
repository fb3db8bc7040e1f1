"""JSON as it came: values that keep their text, and JSON pointers into them.

A reader that turns `1e3` into 1000.0 cannot tell whether the server changed an id's spelling. So
numbers, texts, arrays and objects remember the characters they were read from.
"""

import json
import re
from json.decoder import scanstring

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
SPACE = re.compile(r"[ \t\r\n]*")


class Absent:
    """What a pointer finds where nothing is."""

    def __repr__(self):
        return "nothing"


ABSENT = Absent()


class Integer(int):
    raw: str


class Real(float):
    raw: str


class Text(str):
    raw: str


class Array(list):
    raw: str


class Object(dict):
    raw: str


def parse(text):
    """Reads one JSON value; raises ValueError for anything else, duplicate keys and lone surrogates too."""
    try:
        value, end = _value(text, SPACE.match(text, 0).end())
    except IndexError:
        raise ValueError("the JSON text ends too early") from None
    except RecursionError:
        raise ValueError("the JSON text nests too deep") from None
    end = SPACE.match(text, end).end()
    if end != len(text):
        raise ValueError(f"something follows the JSON value at character {end}")
    return value


def _kept(kind, value, text, start, end):
    kept = kind(value)
    kept.raw = text[start:end]
    return kept, end


def _string(text, start):
    value, end = scanstring(text, start + 1, True)
    if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise ValueError("a text holds a lone surrogate")
    return _kept(Text, value, text, start, end)


def _value(text, start):
    first = text[start]
    if first == '"':
        return _string(text, start)
    if first == "{":
        return _object(text, start)
    if first == "[":
        return _array(text, start)
    for word, value in (("true", True), ("false", False), ("null", None)):
        if text.startswith(word, start):
            return value, start + len(word)
    number = NUMBER.match(text, start)
    if number is None:
        raise ValueError(f"no JSON value at character {start}")
    kind = Real if number[1] or number[2] else Integer
    return _kept(kind, number[0], text, start, number.end())


def _array(text, start):
    items = []
    at = SPACE.match(text, start + 1).end()
    if text[at] == "]":
        return _kept(Array, items, text, start, at + 1)
    while True:
        item, at = _value(text, at)
        items.append(item)
        at = SPACE.match(text, at).end()
        if text[at] == "]":
            return _kept(Array, items, text, start, at + 1)
        if text[at] != ",":
            raise ValueError(f"neither , nor ] at character {at}")
        at = SPACE.match(text, at + 1).end()


def _object(text, start):
    members = {}
    at = SPACE.match(text, start + 1).end()
    if text[at] == "}":
        return _kept(Object, members, text, start, at + 1)
    while True:
        if text[at] != '"':
            raise ValueError(f"no member name at character {at}")
        name, at = _string(text, at)
        if name in members:
            raise ValueError(f"the member {name!r} stands twice")
        at = SPACE.match(text, at).end()
        if text[at] != ":":
            raise ValueError(f"no : at character {at}")
        members[name], at = _value(text, SPACE.match(text, at + 1).end())
        at = SPACE.match(text, at).end()
        if text[at] == "}":
            return _kept(Object, members, text, start, at + 1)
        if text[at] != ",":
            raise ValueError(f"neither , nor }} at character {at}")
        at = SPACE.match(text, at + 1).end()


def raw(value):
    """The text that a value was read from; compact JSON for one that was not read."""
    return getattr(value, "raw", None) or json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def short(value, most=160):
    """A value for people."""
    if value is ABSENT:
        return "nothing"
    text = raw(value)
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def find(value, pointer):
    """What a JSON pointer (RFC 6901) names, or ABSENT; the empty pointer names the whole."""
    if pointer == "":
        return value
    for step in pointer[1:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def kind(value):
    """The JSON type's name; a number without fraction and exponent is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for types, name in ((int, "integer"), (float, "number"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(value, types):
            return name
    return "nothing"


def same(one, other):
    """Whether two values are equal and of the same types: 1 is not true, and \"1\" is not 1."""
    if kind(one) != kind(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other
