"""Prints the rows that features.sh gathered as a table; exit 1 if a feature fails.

features_table.py ROWS
"""

import json
import sys

FEATURES = [
    "form", "url", "sample", "roots", "progress", "cancel", "lists", "read", "template", "prompt", "complete",
    "updates", "log", "tasks",
]  # fmt: skip
# What a client does not have; README.md says how that is known. The client's program proves it on each run.
NONE = {("python", "legacy", "tasks"), ("typescript-2", "auto", "tasks"), ("rust", "legacy", "tasks")}

table, notes, bad, counts = [("client", "mode", "transport", *FEATURES)], [], [], {}


def cell(who, mode, feature, outcome):
    """The word in the table, and what is wrong with it if anything is."""
    if outcome == "ok":
        return "ok", None
    if isinstance(outcome, dict) and "none" in outcome:
        if (who, mode, feature) in NONE:
            notes.append(f"none: {who} {mode} {feature}: {outcome['none']}")
            return "none", None
        return "FAILED", f"is said to be missing in the client, and features_table.py knows otherwise: {outcome['none']}"
    return "FAILED", str(outcome["failed"] if isinstance(outcome, dict) else "was not checked")


for line in open(sys.argv[1], encoding="utf-8"):
    expected, transport, status, text = line.rstrip("\n").split("\t", 3)
    row = json.loads(text)
    who, mode = row.get("client", "?"), row.get("mode", "?")
    cells = []
    for feature in FEATURES:
        word, problem = cell(who, mode, feature, row.get("features", {}).get(feature))
        cells.append(word)
        counts[word] = counts.get(word, 0) + 1
        if problem:
            bad.append(f"{who} {mode} {transport}: {feature}: {problem}")
    if status != "0":
        bad.append(f"{who} {mode} {transport}: exit code {status}")
    elif row["revision"] != expected:
        bad.append(f"{who} {mode} {transport}: revision {row['revision']!r}, expected {expected}")
    table.append((who, mode, transport, *cells))
widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
for row in table:
    print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
for note in dict.fromkeys(notes):
    print(note)
for problem in bad:
    print(f"FAILED {problem}")
print(", ".join(f"{counts.get(word, 0)} {word}" for word in ("ok", "none", "FAILED")))
sys.exit(1 if bad or len(table) == 1 else 0)
