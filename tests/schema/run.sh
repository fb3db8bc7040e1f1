#!/usr/bin/env bash
# Judges every message that a server says in a transcript by the specification's JSON schema of its revision.
#
#   tests/schema/run.sh            ONLY=array tests/schema/run.sh: of those transcripts alone
#
# The transcripts are played with RECORD set, so that what the server says is written down, and `judge.rs`
# reads that. The schemas come out of the official conformance suite; they and what was said stay in .cache/.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
here=$root/tests/schema
. "$root/tests/interop/cache.sh"

node=$(node22)
fill_suite() { fill_npm "$1" "$root/conformance"; }
suite=$(cached conformance fill_suite "$root/conformance/package-lock.json")
fill_schemas() {
  "$node" "$here/schemas.mjs" "$suite/node_modules/@modelcontextprotocol/conformance/dist/index.js" "$1"
}
schemas=$(cached schemas fill_schemas "$root/conformance/package-lock.json" "$here/schemas.mjs")

said=$cache/said
rm -rf "$said"
RECORD=$said cargo test --quiet --locked --test transcripts every_transcript
cargo run --quiet --locked --example schema-judge -- "$schemas" "$said" "$here/wrong.jsonl"
