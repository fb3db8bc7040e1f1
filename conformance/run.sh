#!/usr/bin/env bash
# Runs the official conformance suite against the fixture server.
#
#   conformance/run.sh [-v] [REVISION...]        default: 2025-06-18 2025-11-25 2026-07-28
#
#   -v        print every check that failed, the expected ones too
#   FIXTURE   another server to test: `FIXTURE --http 127.0.0.1:0` must announce
#             `listening on URL` on its standard error
#
# Stricter than the suite: a scenario passes only if a check of its own succeeded and none failed or
# warned. Fails on a failure that expected-failures/REVISION.yml does not list, and on an entry there
# that passes by now. What the suite wrote stays in .cache/conformance-results/REVISION.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
here=$root/conformance
. "$root/tests/interop/cache.sh"
verbose=
[ "${1:-}" = -v ] && { verbose=-v; shift; }
[ $# -gt 0 ] || set -- 2025-06-18 2025-11-25 2026-07-28

if [ -z "${FIXTURE:-}" ]; then
  cargo build --quiet --locked --example conformance-fixture
  FIXTURE=${CARGO_TARGET_DIR:-$root/target}/debug/examples/conformance-fixture
fi
fill_suite() { fill_npm "$1" "$here"; }
node=$(node22)
suite=$(cached conformance fill_suite "$here/package-lock.json")/node_modules/@modelcontextprotocol/conformance/dist/index.js

server=
stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; server=; } || true
}
trap stop EXIT
failed=0
for revision; do
  results=$cache/conformance-results/$revision
  rm -rf "$results" && mkdir -p "$results/checks"
  "$node" "$suite" list --server >"$results/scenarios.txt"
  "$FIXTURE" --http 127.0.0.1:0 2>"$results/server.log" &
  server=$!
  url=$(await_url "$results/server.log" "$server")
  # Its exit code does not decide: it passes warnings, and scenarios in which nothing succeeded.
  "$node" "$suite" server --url "$url" --suite all --spec-version "$revision" -o "$results/checks" \
    >"$results/suite.log" 2>&1 || true
  stop
  "$node" "$here/judge.mjs" "$revision" "$results" "$here/expected-failures/$revision.yml" $verbose || failed=1
done
exit "$failed"
