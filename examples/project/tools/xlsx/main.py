"""Reads Excel workbooks; one JSON object on standard output, whatever happens."""

import argparse
import datetime
import json
import sys
from pathlib import Path

SUFFIXES = (".xlsx", ".xlsm")


class Failed(Exception):
    def __init__(self, code, message, exit_code=1, details=None):
        super().__init__(message)
        self.code, self.exit_code, self.details = code, exit_code, details or {}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failed("usage", message, 2)


def parser():
    parser = Parser(prog="xlsx", allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
    for name in ACTIONS:
        action = actions.add_parser(name, allow_abbrev=False)
        action.add_argument("--path", required=True)
        if name == "read-sheet":
            action.add_argument("--sheet")
        if name == "dump":
            action.add_argument("--save")
        if name != "list-sheets":
            action.add_argument("--max-results", type=int, default=200 if name == "read-sheet" else 500)
    return parser


def within(text):
    """A path of the project, in whose folder this runs; links resolved."""
    path = Path(text).resolve()
    if not path.is_relative_to(Path.cwd().resolve()):
        raise Failed("invalid_argument", "the path leads out of the project", 2)
    return path


def opened(text):
    path = within(text)
    if not path.is_file():
        raise Failed("not_found", f"no such file: {text}")
    if path.suffix.lower() not in SUFFIXES:
        raise Failed("invalid_argument", f"{path.name} is no workbook: its name ends in {' or '.join(SUFFIXES)}", 2)
    from openpyxl import load_workbook

    try:
        return load_workbook(path, read_only=False, data_only=True)
    except Exception as error:
        raise Failed("unreadable", f"{path.name} cannot be read as a workbook") from error


def cell(value):
    if value is None:
        return ""
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def rows(sheet):
    """Rows that hold anything, with their numbers, trailing blank cells left out."""
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [cell(value) for value in row]
        while cells and cells[-1] == "":
            cells.pop()
        if cells:
            yield number, cells


def capped(sheet, most):
    """At least one row, and whether more rows existed."""
    taken = []
    for item in rows(sheet):
        if len(taken) >= max(most, 1):
            return taken, True
        taken.append(item)
    return taken, False


def list_sheets(arguments):
    book = opened(arguments.path)
    sheets = [{"title": s.title, "rows": s.max_row, "columns": s.max_column} for s in book.worksheets]
    return {"path": arguments.path, "sheets": sheets}


def read_sheet(arguments):
    book = opened(arguments.path)
    titles = [sheet.title for sheet in book.worksheets]
    title = titles[0] if arguments.sheet is None else arguments.sheet
    if title not in titles:
        raise Failed("invalid_argument", f"no sheet {title!r}; the workbook has: {', '.join(titles)}", 2, {"sheets": titles})
    taken, more = capped(book[title], arguments.max_results)
    return {"sheet": title, "rows": [cells for _, cells in taken], "truncated": more}


def dump(arguments):
    book = opened(arguments.path)
    lines = [f"file: {arguments.path}", f"sheets: {', '.join(sheet.title for sheet in book.worksheets)}"]
    for sheet in book.worksheets:
        lines += ["", f"== {sheet.title} ({sheet.max_row} rows, {sheet.max_column} columns)"]
        taken, more = capped(sheet, arguments.max_results)
        lines += [f"r{number}: {' | '.join(str(c) for c in cells)}" for number, cells in taken] or ["(empty)"]
        if more:
            lines.append(f"(more rows follow; {len(taken)} are shown)")
    text = "\n".join(lines) + "\n"
    if arguments.save is None:
        return {"text": text, "characters": len(text)}
    target = within(arguments.save)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return {"savedTo": str(target), "characters": len(text)}


ACTIONS = {"list-sheets": list_sheets, "read-sheet": read_sheet, "dump": dump}


def main(argv):
    try:
        if argv and not argv[0].startswith("-") and argv[0] not in ACTIONS:
            raise Failed("usage", f"unknown action {argv[0]!r}; the actions are {', '.join(ACTIONS)}", 2)
        arguments = parser().parse_args(argv)
        print(json.dumps(ACTIONS[arguments.action](arguments), ensure_ascii=False))
        return 0
    except Failed as failed:
        error = {"code": failed.code, "message": str(failed), "details": failed.details}
        print(json.dumps({"error": error}, ensure_ascii=False))
        return failed.exit_code
    except ModuleNotFoundError as error:
        message = f"the Python module {error.name} is missing: install tools/xlsx/requirements.txt"
        print(json.dumps({"error": {"code": "not_installed", "message": message, "details": {}}}))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
