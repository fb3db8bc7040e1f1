#!/usr/bin/env bash
# Official clients of three languages against one server, in both eras, over stdio and Streamable HTTP, and
# over HTTP+SSE those that still have it.
#
#   TOOL=name [ARGS='{"key":"value"}'] tests/interop/run.sh TWODOOR SURFACE
#
# Fails if a client fails, negotiates another revision than expected, or if not every client is
# given one and the same list (by the digest that it computes itself) and one and the same answer, or if
# `verify` or `probe` computes another digest than the clients.
set -euo pipefail
twodoor=$(realpath "${1:?the twodoor binary}")
surface=$(realpath "${2:?a surface}")
cd "$(dirname "$0")/../.."
root=$PWD
here=$root/tests/interop
. "$here/cache.sh"
tool=${TOOL:?the name of a tool}
args=${ARGS:-"{}"}

fill_python() { fill_venv "$1" "$here/requirements.txt"; }
fill_typescript() { fill_npm "$1" "$here"; }
python=$(cached interop-python fill_python "$here/requirements.txt")/bin/python
node=$(node22)
modules=$(cached interop-npm fill_typescript "$here/package-lock.json")/node_modules
CARGO_TARGET_DIR=$cache/interop-rust cargo build --quiet --locked --manifest-path "$here/rust/Cargo.toml"
rust=$cache/interop-rust/debug/interop-rmcp

work=$(mktemp -d)
"$twodoor" serve "$surface" --http 127.0.0.1:0 --sse 2>"$work/server.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
url=$(await_url "$work/server.log" "$server")

# row "TRANSPORT..." EXPECTED-REVISION CLIENT... : runs the client over each of these transports.
row() {
  local transports=$1 revision=$2 transport status line
  shift 2
  for transport in $transports; do
    local target=("$url")
    [ "$transport" = sse ] && target=("${url%/mcp}/sse")
    [ "$transport" = stdio ] && target=("$twodoor" serve "$surface")
    echo "   $(basename "$2") ${*:3} $transport" >&2
    status=0
    line=$("$@" "$tool" "$args" "${target[@]}" 2>"$work/client.log") || status=$?
    printf '%s\t%s\t%s\t%s\n' "$revision" "$transport" "$status" "${line:-"{}"}" >>"$work/rows"
    [ "$status" = 0 ] || { echo "$line"; cat "$work/client.log"; } >&2
  done
}
export INTEROP_NODE_MODULES=$modules
row "http stdio" 2026-07-28 "$python" "$here/client.py" auto
row "http stdio sse" 2025-11-25 "$python" "$here/client.py" legacy
row "http stdio" 2026-07-28 "$node" "$here/client.mjs" v2 auto
row "http stdio sse" 2025-11-25 "$node" "$here/client.mjs" v2 legacy
row "http stdio sse" 2025-11-25 "$node" "$here/client.mjs" v1 legacy
row "http stdio" 2026-07-28 env "$rust" auto
row "http stdio" 2025-11-25 env "$rust" legacy
"$python" "$here/table.py" "$work/rows" | tee "$work/table"

# What the clients computed is what `verify` and `probe` compute, through each door and over both transports.
digest=$(sed -n 's/^digest \(sha256:[0-9a-f]*\)$/\1/p' "$work/table")
for era in modern legacy; do
  "$twodoor" verify --era "$era" "$url" "$digest"
  "$twodoor" verify --era "$era" "$digest" -- "$twodoor" serve "$surface"
done
for target in "$url" "$twodoor serve $surface"; do
  read -ra words <<<"$target"
  "$twodoor" probe --json "${words[@]}" >"$work/probe"
  "$python" - "$digest" "$work/probe" <<'END'
import json, sys
report = json.load(open(sys.argv[2], encoding="utf-8"))
digests = {report[door]["digest"][form] for door in ("modern", "legacy") for form in ("sortedKeys", "rfc8785")}
sys.exit(0 if digests == {sys.argv[1]} else f"probe computes {digests}")
END
  echo "probe of $target: the same digest through both doors"
done
