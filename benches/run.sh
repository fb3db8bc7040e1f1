#!/usr/bin/env bash
# Builds the bare limits, the engine, the product and, with --peers, servers of other people's libraries with one
# profile, runs them interleaved and prints the ratios. Options are those of the load program: see `run.sh --help`.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(dirname "$here")
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/target}
scope=--workspace product=1 peers=
for word in "$@"; do
  case $word in
    --help) scope=--package=twodoor-benches product= ;;
    # The noise floor is measured without the engine, so it can be had while the engine does not compile.
    --noise) scope=--package=twodoor-benches product= ;;
    --peers) peers=1 ;;
  esac
done
build() { cargo build --quiet --locked --release --manifest-path "$@" >&2; }
build "$here/Cargo.toml" "$scope"
[ -z "$product" ] || build "$root/Cargo.toml" --bin twodoor
if [ -n "$peers" ]; then
  . "$root/tests/interop/cache.sh"
  . "$here/peers/build.sh"
fi
exec "$CARGO_TARGET_DIR/release/load" "$@"
