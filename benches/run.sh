#!/usr/bin/env bash
# Builds the bare limits, the engine and the load program with one profile, runs them interleaved
# and prints the ratios. Options are those of the load program: see `run.sh --help`.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
# The noise floor is measured without the engine, so it can be had while the engine does not compile.
scope=--workspace
for word in "$@"; do [ "$word" != --noise ] || scope=--package=twodoor-benches; done
cargo build --quiet --locked --release "$scope" --manifest-path "$here/Cargo.toml"
exec "$CARGO_TARGET_DIR/release/load" "$@"
