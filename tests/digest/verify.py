"""Recomputes every digest in vectors.json with the standard library alone. Exit 1 if one differs. See docs/digest.md."""

import hashlib
import json
import math
import pathlib
import sys
from decimal import Decimal

WORDS = ("title", "description", "examples", "$comment")
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
ONE = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems", "items", "contains")
ONE += ("not", "if", "then", "else", "propertyNames", "contentSchema")


def refuse(why):
    raise ValueError(why)


def finite(kind):
    return lambda text: kind(text) if math.isfinite(float(text)) else refuse("no double")


def unique(members):
    return dict(members) if len(dict(members)) == len(members) else refuse("duplicate key")


def read(text):
    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_int=finite(int), parse_float=finite(float))


def sorted_keys(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def number(value):
    """A double as ECMAScript writes it (RFC 8785, 3.2.2.3)."""
    sign, digits, exponent = Decimal(repr(float(value))).normalize().as_tuple()
    digits, point = "".join(map(str, digits)), len(digits) + exponent
    if digits == "0":
        return "0"
    if 0 < point <= 21:
        text = digits[:point].ljust(point, "0") + ("." + digits[point:] if digits[point:] else "")
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{point - 1:+d}"
    return "-" * sign + text


def rfc8785(value):
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(f"{rfc8785(k)}:{rfc8785(v)}" for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(rfc8785, value)) + "]"
    plain = isinstance(value, (bool, str)) or value is None
    return json.dumps(value, ensure_ascii=False) if plain else number(value)


def sha256(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def half(schema, words):
    """What of a schema is there to be read, or the rest of it."""
    if not isinstance(schema, dict):
        return {} if words else schema
    kept = {}
    for key, value in schema.items():
        if key in WORDS:
            if words:
                kept[key] = value
            continue
        if key in NAMED and isinstance(value, dict):
            value = {name: half(below, words) for name, below in value.items()}
            value = {name: below for name, below in value.items() if below or not words}
        elif key in LISTED and isinstance(value, list):
            value = [half(below, words) for below in value]
            value = value if any(value) or not words else []
        elif key in ONE:
            value = half(value, words)
        elif words:
            continue
        if value or not words:
            kept[key] = value
    return kept


def of_tool(tool):
    def declared(*keys):
        return {key: tool[key] for key in keys if key in tool}

    hints, schemas = tool.get("annotations"), declared("inputSchema", "outputSchema")
    of_dict = isinstance(hints, dict)
    title = {"title": hints["title"]} if of_dict and "title" in hints else {}
    rest = {key: value for key, value in hints.items() if key != "title"} if of_dict else hints
    words = {key: half(schema, True) for key, schema in schemas.items() if half(schema, True)}
    shapes = {key: half(schema, False) for key, schema in schemas.items()}
    contract = declared("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    pinned = declared("name", "description", "inputSchema", "outputSchema")
    pinned = {key: value for key, value in pinned.items() if value not in (None, "", [], {})}
    named = isinstance(tool.get("name"), str) and tool["name"]
    wording = {**declared("title", "description"), **words, **({"annotations": title} if title else {})}
    shape = {**declared("name"), **shapes, **({"annotations": rest} if "annotations" in tool else {})}
    return {
        "tool": sha256(rfc8785({"format": "twodoor/tool/1", **contract})),
        "wording": sha256(rfc8785({"format": "twodoor/wording/1", **wording})),
        "shape": sha256(rfc8785({"format": "twodoor/shape/1", **shape})),
        "gateway": sha256(rfc8785(pinned)) if named else None,
    }


def of_surface(surface):
    tools = {tool["name"]: of_tool(tool)["tool"] for tool in surface["tools"]}
    return {"surface": sha256(rfc8785({"format": "twodoor/surface/1", **surface, "tools": tools}))}


def of_json(value):
    return {"sortedKeys": sha256(sorted_keys(value)), "rfc8785": sha256(rfc8785(value))}


def compute(case):
    try:
        return {"json": of_json, "tool": of_tool, "surface": of_surface}[case["kind"]](read(case["text"]))
    except ValueError:
        return {"refused": True}


if __name__ == "__main__":
    cases = json.loads(pathlib.Path(__file__).with_name("vectors.json").read_text(encoding="utf-8"))["cases"]
    wrong = [case["name"] for case in cases if compute(case) != case["expected"]]
    print(f"python: {len(cases) - len(wrong)} of {len(cases)} vectors", *wrong, sep="\n  ")
    sys.exit(1 if wrong else 0)
