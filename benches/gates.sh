#!/usr/bin/env bash
# Counts what a request costs in instructions and allocations, and holds it to ceilings.toml. `gates.sh --help` has the options.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if ! command -v valgrind >/dev/null; then
  echo "gates.sh: valgrind is missing, which counts the instructions. Install the package valgrind of your system," >&2
  echo "for example with: apt-get install valgrind" >&2
  exit 1
fi
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
cargo build --quiet --locked --profile gates --workspace --manifest-path "$here/Cargo.toml" >&2
exec "$CARGO_TARGET_DIR/gates/load" gates "$@"
