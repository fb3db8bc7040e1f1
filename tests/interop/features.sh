#!/usr/bin/env bash
# Official clients of three languages against interop-server (server.rs), feature by feature, in both
# eras, over both transports.
#
#   tests/interop/features.sh INTEROP-SERVER
#
# Fails if a client cannot use a feature that it has.
set -euo pipefail
server=$(realpath "${1:?the interop-server binary}")
cd "$(dirname "$0")/../.."
root=$PWD
here=$root/tests/interop
. "$here/cache.sh"

fill_python() { fill_venv "$1" "$here/requirements.txt"; }
fill_typescript() { fill_npm "$1" "$here"; }
python=$(cached interop-python fill_python "$here/requirements.txt")/bin/python
node=$(node22)
INTEROP_NODE_MODULES=$(cached interop-npm fill_typescript "$here/package-lock.json")/node_modules
export INTEROP_NODE_MODULES
CARGO_TARGET_DIR=$cache/interop-rust cargo build --quiet --locked --manifest-path "$here/rust/Cargo.toml"
rust=$cache/interop-rust/debug/interop-rmcp

work=$(mktemp -d)
listener=
stop() {
  [ -z "$listener" ] || { kill "$listener" 2>/dev/null && wait "$listener" 2>/dev/null; listener=; } || true
}
trap 'stop; rm -rf "$work"' EXIT

# row "TRANSPORT..." EXPECTED-REVISION CLIENT... : runs the client over each of these transports, over HTTP
# on a listener of its own.
row() {
  local transports=$1 revision=$2 transport status line
  shift 2
  for transport in $transports; do
    local target=("$server") url
    echo "   $(basename "$2") ${*:3} $transport" >&2
    if [ "$transport" != stdio ]; then
      "$server" --http 127.0.0.1:0 2>"$work/server.log" &
      listener=$!
      url=$(await_url "$work/server.log" "$listener")
      target=("$url")
      [ "$transport" = http ] || target=("${url%/mcp}/sse")
    fi
    status=0
    line=$("$@" "${target[@]}" 2>"$work/client.log") || status=$?
    printf '%s\t%s\t%s\t%s\n' "$revision" "$transport" "$status" "${line:-"{}"}" >>"$work/rows"
    [ "$status" = 0 ] || cat "$work/client.log" >&2
    if [ -n "$listener" ]; then
      kill -0 "$listener" 2>/dev/null || { echo "the server ended:" && cat "$work/server.log" && exit 1; } >&2
      stop
    fi
  done
}
row "http stdio" 2026-07-28 "$python" "$here/features.py" auto
row "http stdio sse" 2025-11-25 "$python" "$here/features.py" legacy
row "http stdio" 2026-07-28 "$node" "$here/features.mjs" v2 auto
row "http stdio sse" 2025-11-25 "$node" "$here/features.mjs" v2 legacy
row "http stdio sse" 2025-11-25 "$node" "$here/features.mjs" v1 legacy
row "http stdio" 2026-07-28 env "$rust" features auto
row "http stdio" 2025-11-25 env "$rust" features legacy
"$python" "$here/features_table.py" "$work/rows"
