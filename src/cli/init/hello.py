#!/usr/bin/env python3
"""One action, `show`. Prints one JSON value: the greeting, or what was wrong with the call."""

import argparse
import json
import sys


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(json.dumps({"error": {"code": "usage", "message": message, "details": {}}}))
        self.print_usage(sys.stderr)
        sys.exit(2)


def main():
    parser = Parser(prog="hello", allow_abbrev=False)
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", allow_abbrev=False)
    show.add_argument("--name", required=True)
    arguments = parser.parse_args()
    print(json.dumps({"greeting": f"Hello, {arguments.name}!"}, ensure_ascii=False))


if __name__ == "__main__":
    main()
