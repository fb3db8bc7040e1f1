#!/usr/bin/env bash
# The tests. ./test.sh runs all steps below but `tools` and `long`, in this order, and stops at the first failure.
#
#   ./test.sh [fmt] [clippy] [rust] [digest] [schema] [interop] [project] [servers] [cases] [conformance] [speed] [tools] [long]
#
#   fmt          the code is formatted
#   clippy       no lint warns
#   rust         unit, machine, transcript and documentation tests
#   digest       the vectors of digests, recomputed in Python and JavaScript
#   schema       every message of the transcripts by the specification's JSON schemas
#   interop      the official Python, TypeScript and Rust clients against the binary, and against every feature
#   project      the example project's surfaces through the same clients
#   servers      other people's MCP servers, imported, and called through what was made of them
#   cases        the runner of cases, and our own cases against the binary
#   conformance  the official suite against the fixture server
#   speed        instructions and allocations per request against their ceilings (benches/ceilings.toml)
#   tools        mcp-assert, the Inspector and fastmcp against the example surfaces
#   long         the Rust tests that are ignored by default
#
# Needs Rust, Python 3 with venv, npm, git and valgrind. Downloads go to .cache/ and happen once.
set -euo pipefail
cd "$(dirname "$0")"

step_fmt() {
  cargo fmt --check
  cargo fmt --check --manifest-path tests/interop/rust/Cargo.toml
  cargo fmt --check --all --manifest-path benches/Cargo.toml
  cargo fmt --check --manifest-path benches/peers/rust/Cargo.toml
}

step_clippy() {
  cargo clippy --locked --all-targets -- --deny warnings
}

step_rust() {
  if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --locked
    cargo test --locked --doc
  else
    cargo test --locked
  fi
}

step_digest() {
  tests/digest/run.sh
}

step_schema() {
  tests/schema/run.sh
}

step_interop() {
  cargo build --locked
  TOOL=greet ARGS='{"name":"Ærøskøbing 👋"}' \
    tests/interop/run.sh "${CARGO_TARGET_DIR:-target}/debug/twodoor" tests/interop/surface.yaml
  cargo build --locked --example interop-server
  tests/interop/features.sh "${CARGO_TARGET_DIR:-target}/debug/examples/interop-server"
}

step_project() {
  cargo build --locked
  tests/project/run.sh "${CARGO_TARGET_DIR:-target}/debug/twodoor"
}

step_cases() {
  cargo build --locked
  python3 -m unittest discover --start-directory tests/replay
  local file
  for file in conformance/cases.d/*.jsonl; do
    echo "$file" >&2
    conformance/cases "$file"
  done
}

step_conformance() {
  conformance/run.sh
}

step_speed() {
  benches/gates.sh
  CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-benches/target} \
    cargo test --quiet --locked --profile gates --package twodoor-benches --manifest-path benches/Cargo.toml
}

step_servers() {
  tests/import/servers.sh
}

step_tools() {
  conformance/tools.sh
}

step_long() {
  if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --locked --run-ignored only --no-tests pass
  else
    cargo test --locked -- --ignored
  fi
}

[ $# -gt 0 ] || set -- fmt clippy rust digest schema interop project servers cases conformance speed
for step; do
  declare -F "step_$step" >/dev/null || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
done

step=
ended() {
  local status=$?
  [ "$status" = 0 ] || [ -z "$step" ] ||
    echo "== $step FAILED after $((SECONDS - began)) s. This step alone: ./test.sh $step" >&2
}
trap ended EXIT
for step; do
  began=$SECONDS
  echo "== $step" >&2
  # Not in a condition: there the shell would run on after a command that failed.
  "step_$step"
  echo "== $step ok, $((SECONDS - began)) s" >&2
done
