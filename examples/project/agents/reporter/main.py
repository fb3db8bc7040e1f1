"""Puts a month report together by driving two tools; one JSON object on standard output, whatever happens."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


class Failed(Exception):
    def __init__(self, code, message, exit_code=1):
        super().__init__(message)
        self.code, self.exit_code = code, exit_code


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failed("usage", message, 2)


def call(tool, *argv):
    ran = subprocess.run([sys.executable, TOOLS / tool / "main.py", *argv], capture_output=True, text=True, check=False)
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        raise Failed("tool_failed", f"{tool} printed no JSON") from None
    if "error" in answer:
        raise Failed("tool_failed", f"{tool}: {answer['error']['message']}")
    return answer


def month_report(arguments):
    sheet = call("xlsx", "read-sheet", f"--path={arguments.workbook}", "--max-results=10000")
    if len(sheet["rows"]) < 2:
        raise Failed("invalid_argument", "the first sheet has no rows below its heading", 2)
    heading, *rows = sheet["rows"]
    sums = {}
    for index, title in enumerate(heading):
        cells = [row[index] for row in rows if index < len(row)]
        numbers = [cell for cell in cells if isinstance(cell, (int, float)) and not isinstance(cell, bool)]
        if numbers and len(numbers) == len([cell for cell in cells if cell != ""]):
            sums[str(title)] = round(sum(numbers), 2)
    lines = [f"{title}: {total}" for title, total in sums.items()]
    text = "\n".join([f"{len(rows)} rows of {sheet['sheet']}.", *lines])
    call("outbox", "write-draft", f"--name={arguments.draft}", f"--to={arguments.to}",
         f"--subject=Month report: {sheet['sheet']}", f"--text={text}")
    return {"draft": arguments.draft, "sums": sums, "rows": len(rows)}


def main(argv):
    try:
        if argv and argv[0] != "month-report" and not argv[0].startswith("-"):
            raise Failed("usage", f"unknown action {argv[0]!r}; the action is month-report", 2)
        parser = Parser(prog="reporter", allow_abbrev=False)
        actions = parser.add_subparsers(dest="action", required=True, parser_class=Parser)
        action = actions.add_parser("month-report", allow_abbrev=False)
        action.add_argument("--workbook", required=True)
        action.add_argument("--to", required=True)
        action.add_argument("--draft", default="month-report")
        print(json.dumps(month_report(parser.parse_args(argv)), ensure_ascii=False))
        return 0
    except Failed as failed:
        print(json.dumps({"error": {"code": failed.code, "message": str(failed), "details": {}}}, ensure_ascii=False))
        return failed.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
