"""Prints the rows that run.sh gathered as a table; exit 1 if one is bad or if they do not agree."""

import json
import sys

HEAD = ("client", "mode", "transport", "revision", "tools", "digest", "call")
rows, bad, digests, texts, passed = [HEAD], [], set(), set(), 0
for line in open(sys.argv[1], encoding="utf-8"):
    expected, transport, status, text = line.rstrip("\n").split("\t", 3)
    row = json.loads(text)
    call = row.get("call", {"isError": True})
    published, recomputed = row.get("digest_published"), row.get("digest_recomputed")
    digest_ok = recomputed is not None and recomputed == published
    call_ok = not call["isError"]
    cells = [str(row.get(k, "-")) for k in ("client", "mode", "transport", "revision", "tools")]
    cells[2] = transport
    rows.append((*cells, "ok" if digest_ok else "BAD", "ok" if call_ok else "BAD"))
    reasons = []
    if "error" in row:
        reasons.append(row["error"])
    else:
        if row.get("revision") != expected:
            reasons.append(f"revision {row.get('revision')}, expected {expected}")
        if not digest_ok:
            reasons.append(f"published {published}, recomputed {recomputed}")
        if not call_ok:
            reasons.append(f"the call failed: {call.get('text')}")
    if status != "0" and not reasons:
        reasons.append(f"exit code {status}: the SDK's list is not the delivered one, or the client crashed")
    passed += not reasons
    bad += [f"{' '.join(cells[:3])}: {reason}" for reason in reasons]
    digests.add(recomputed)
    texts.add(call.get("text"))
if len(digests) != 1:
    bad.append(f"the digests differ: {sorted(map(str, digests))}")
if len(texts) != 1:
    bad.append(f"the answers differ: {sorted(map(str, texts))}")
widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
for r in rows:
    print("  ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip())
print(f"digest {', '.join(map(str, digests))}")
for reason in bad:
    print(f"FAILED {reason}")
print(f"{passed} passed, {len(rows) - 1 - passed} failed")
sys.exit(1 if bad or len(rows) == 1 else 0)
