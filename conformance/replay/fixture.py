"""The surface file of a case, from its `fixture`.

A fixture tool stands for one that its author declared for just this input: its values may begin
with `-`, its script is fixed, its result may be as large as a surface allows. JSON is YAML, so the
file is written as JSON.
"""

import json
import re

from . import server

SHARED = [
    {
        "name": "show_arg",
        "inputSchema": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]},
        "argv": ["printf", "%s", "{s}"],
    },
    {"name": "echo_args", "inputSchema": {"type": "object"}, "argv": ["cat"], "args_on_stdin": True},
    {
        "name": "nap",
        "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]},
        "argv": ["sleep", "{seconds}"],
    },
]

TOOL_KEYS = {"name", "description", "inputSchema", "outputSchema", "argv", "args_on_stdin", "cwd", "env", "output", "talk", "task", "scopes"}
# Beside `tools` a surface file declares these; a fixture holds them as the surface file has them.
BESIDE_TOOLS = ("resources", "templates", "prompts", "skills")
# A result of the tool as MCP content blocks, under the name that the fixture has for it.
OUTPUTS = {"mcp-content": "content"}


class Refused(Exception):
    """`twodoor check` refuses what the case declares."""


class Fixture:
    """What is declared for a case, and the surface file that says so."""

    def __init__(self, case, binary, folder):
        declared = case.get("fixture") or {}
        unknown = set(declared) - {"tools", "files", *BESIDE_TOOLS}
        if unknown:
            raise Refused(f"the fixture has the unknown key {sorted(unknown)[0]!r}")
        self.binary = binary
        self.file = folder / "surface.yaml"
        self.tools = list(declared.get("tools") or SHARED)
        self.beside = {key: declared[key] for key in BESIDE_TOOLS if key in declared}
        for name, content in declared.get("files", {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            path.chmod(0o755)
        self.schemas = {tool["name"]: tool.get("inputSchema", {}) for tool in self.tools}
        self.divergent = set()
        self.refused = {}

    def write(self, may_be_refused=()):
        """Writes the file and has it checked. A tool that may be refused, and is, is left out."""
        while True:
            self._write()
            found = server.problems(self.binary, self.file)
            if not found:
                return
            if not self._mend(found, may_be_refused):
                rule, message = found[0]["rule"], found[0]["message"]
                raise Refused(f"the surface is refused: {rule}: {message}")

    def add(self, tool):
        """Declares one more tool before anything is served."""
        self.tools.append(tool)

    def add_tool(self, tool):
        """Changes the surface in force: the same file with one more tool, in one step."""
        self.tools.append(tool)
        self._write()

    def _mend(self, found, may_be_refused):
        """Does what the first problem allows; False if nothing does."""
        tool = self._tool_at(found[0]["line"])
        if tool is None:
            return False
        here = [problem["rule"] for problem in found if self._tool_at(problem["line"]) is tool]
        if set(here) == {"divergent"} and tool["name"] not in self.divergent:
            self.divergent.add(tool["name"])
            return True
        if tool["name"] in may_be_refused:
            self.refused[tool["name"]] = sorted(set(here) - {"divergent"}) or here
            self.tools.remove(tool)
            return True
        return False

    def _tool_at(self, line):
        """Each tool has a line of its own, after the first line."""
        return self.tools[line - 2] if 2 <= line < 2 + len(self.tools) else None

    def _write(self):
        tools = (f"{text(tool['name'])}: {text(self._tool(tool))}" for tool in self.tools)
        beside = "".join(f", {text(key)}: {text(value)}" for key, value in self.beside.items())
        lines = '{"surface": "cases", "version": "1.0.0", "tools": {\n' + ",\n".join(tools) + "\n}" + beside + "}\n"
        new = self.file.with_suffix(".new")
        new.write_text(lines, encoding="utf-8")
        new.replace(self.file)

    def _tool(self, tool):
        unknown = set(tool) - TOOL_KEYS
        if unknown:
            raise Refused(f"the fixture tool {tool['name']} has the unknown key {sorted(unknown)[0]!r}")
        schema = tool.get("inputSchema", {"type": "object"})
        properties = schema.get("properties", {})
        used = {name for element in tool["argv"] for name in _placeholders(element, properties)}
        written = {
            "description": tool.get("description", f"Stands for a tool {tool['name']} of somebody's."),
            "inputSchema": schema,
            "run": [_element(element, properties) for element in tool["argv"]],
            "cap": "4MiB",
        }
        typed = {name: properties[name].get("type") for name in sorted(used)}
        data = {name: "data" for name, kind in typed.items() if kind in ("string", "integer", "number")}
        optional = {
            "as": data,
            "stdin": "{*}" if tool.get("args_on_stdin") else None,
            "outputSchema": tool.get("outputSchema"),
            "output": OUTPUTS.get(tool.get("output"), tool.get("output")),
            "cwd": tool.get("cwd"),
            "talk": tool.get("talk"),
            "task": tool.get("task"),
            "scopes": tool.get("scopes"),
            "env": tool.get("env"),
            "divergent": tool["name"] in self.divergent,
        }
        if "outputSchema" in tool:
            optional["output"] = "json"
        return {**written, **{key: value for key, value in optional.items() if value}}


def text(value):
    return json.dumps(value, ensure_ascii=False)


def _placeholders(element, properties):
    return [name for name in re.findall(r"\{([^{}]*)\}", element) if name in properties]


def _element(element, properties):
    """`{name}` of an argument stays; every other brace is a brace."""
    parts = re.split(r"(\{[^{}]*\})", element)
    return "".join(
        part if part[1:-1] in properties and part[:1] == "{" else part.replace("{", "{{").replace("}", "}}")
        for part in parts
    )
