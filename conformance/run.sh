#!/usr/bin/env bash
# Runs the official conformance suite against the fixture server.
#
#   conformance/run.sh [-v] [SET...]        default: all of these, in this order
#
#   2025-06-18 2025-11-25 2026-07-28      every scenario of a revision, at its wire
#   required-2025-11-25 required-2026-07-28
#                                         what the suite froze as required of a revision
#   extensions                            the scenarios of extensions, which belong to no revision
#
#   -v        print every check that failed, the expected ones too
#   FIXTURE   another server to test: `FIXTURE --http 127.0.0.1:0` must announce
#             `listening on URL` on its standard error
#
# Stricter than the suite: a scenario passes only if a check of its own succeeded and none failed or
# warned. Fails on a failure that the set's file in expected-failures/ does not list (a frozen set has
# that of its revision), and on an entry there that passes by now. What the suite wrote stays in
# .cache/conformance-results/SET.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
here=$root/conformance
. "$root/tests/interop/cache.sh"
verbose=
[ "${1:-}" = -v ] && { verbose=-v; shift; }
[ $# -gt 0 ] || set -- 2025-06-18 2025-11-25 2026-07-28 required-2025-11-25 required-2026-07-28 extensions

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
# The scenarios of a set, one a line.
scenarios() {
  case $1 in
    required-*) "$node" "$suite" list --requirements "${1#required-}" | sed -n '/^Server/,/^Client/s/^  - \([^ ]*\)$/\1/p' ;;
    extensions) "$node" "$suite" list --server | sed -n 's/^  - \([^ ]*\) \[extension\]$/\1/p' ;;
    *) "$node" "$suite" list --server | grep -F "$1" | sed -n 's/^  - \([^ ]*\) \[.*\]$/\1/p' ;;
  esac
}

# Runs a set against a server. The suite's exit code does not decide: it passes warnings, and scenarios in
# which nothing succeeded.
run() {
  local set=$1 url=$2 results=$3 scenario
  suite_runs() { "$node" "$suite" server --url "$url" -o "$results/checks" "$@" >>"$results/suite.log" 2>&1 || true; }
  case $set in
    required-*) suite_runs --requirements "${set#required-}" ;;
    extensions) while read -r scenario; do suite_runs --scenario "$scenario" </dev/null; done <"$results/scenarios.txt" ;;
    *) suite_runs --suite all --spec-version "$set" ;;
  esac
}

failed=0
for set; do
  results=$cache/conformance-results/$set
  rm -rf "$results" && mkdir -p "$results/checks"
  scenarios "$set" >"$results/scenarios.txt"
  "$FIXTURE" --http 127.0.0.1:0 2>"$results/server.log" &
  server=$!
  url=$(await_url "$results/server.log" "$server")
  run "$set" "$url" "$results"
  stop
  "$node" "$here/judge.mjs" "$set" "$results" "$here/expected-failures/${set#required-}.yml" $verbose || failed=1
done
exit "$failed"
