#!/usr/bin/env bash
# Servers that others wrote, imported: a surface over each passes `check` and pins the list that `verify` finds.
#
#   tests/import/servers.sh [TWODOOR]        default: the debug build
#
# The npm packages server-everything, server-filesystem and server-memory, and a server of the Python SDK.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
here=$root/tests/import/servers
. "$root/tests/interop/cache.sh"

fill_python() { fill_venv "$1" "$root/tests/interop/requirements.txt"; }
fill_servers() { fill_npm "$1" "$here"; }
if [ $# = 0 ]; then
  cargo build --quiet --locked
  set -- "${CARGO_TARGET_DIR:-$root/target}/debug/twodoor"
fi
twodoor=$(realpath "$1")
python=$(cached interop-python fill_python "$root/tests/interop/requirements.txt")/bin/python
node=$(node22)
packages=$(cached import-npm fill_servers "$here/package-lock.json")/node_modules/@modelcontextprotocol

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files"
echo "a line" >"$work/files/note.txt"
cd "$work"

# server NAME LEAST COMMAND...: imports it, checks the file, and compares the pinned digest with what `probe` recomputes.
server() {
  local name=$1 least=$2 pinned tools
  shift 2
  "$twodoor" import mcp --name "$name" --out "$name.yaml" -- "$@" 2>"$name.log" || { cat "$name.log" >&2; return 1; }
  "$twodoor" check "$name.yaml" >"$name.check" || { cat "$name.check" >&2; return 1; }
  tools=$(grep -c '^    upstream: ' "$name.yaml")
  pinned=$(sed -n 's/^    digest: "\(sha256:[0-9a-f]*\)"$/\1/p' "$name.yaml")
  "$twodoor" probe --json -- "$@" >"$name.probe" || true
  grep -qF "$pinned" "$name.probe" || { echo "$name: $pinned is not what probe finds" >&2; return 1; }
  [ "$tools" -ge "$least" ] || { echo "$name: $tools tools" >&2; return 1; }
  echo "   $name: $tools tools, $pinned"
}

server everything 10 "$node" "$packages/server-everything/dist/index.js"
server filesystem 10 "$node" "$packages/server-filesystem/dist/index.js" "$work/files"
server memory 8 "$node" "$packages/server-memory/dist/index.js"
server python 2 "$python" "$here/server.py"
