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

# server NAME LEAST COMMAND...: imports it, checks the file, and holds the server against the digest that was pinned.
server() {
  local name=$1 least=$2 pinned tools
  shift 2
  "$twodoor" import mcp --name "$name" --out "$name.yaml" -- "$@" 2>"$name.log" || { cat "$name.log" >&2; return 1; }
  "$twodoor" check "$name.yaml" >"$name.check" || { cat "$name.check" >&2; return 1; }
  tools=$(grep -c '^    upstream: ' "$name.yaml")
  pinned=$(sed -n 's/^    digest: "\(sha256:[0-9a-f]*\)"$/\1/p' "$name.yaml")
  "$twodoor" verify "$pinned" -- "$@" >"$name.verify" || { cat "$name.verify" >&2; return 1; }
  [ "$tools" -ge "$least" ] || { echo "$name: $tools tools" >&2; return 1; }
  echo "   $name: $tools tools, $(sed -n 's/^    era: //p' "$name.yaml" | grep . || echo either) era, $pinned"
}

# called SURFACE TOOL ARGUMENTS EXPECTED: a modern and a legacy client list and call the tool through the surface.
called() {
  local mode line
  for mode in auto legacy; do
    line=$("$python" "$root/tests/interop/client.py" "$mode" "$2" "$3" "$twodoor" serve "$1" 2>client.log) ||
      { echo "$1 $2 $mode: $line" >&2; cat client.log >&2; return 1; }
    case $line in
      *"$4"*) echo "   $1 $2 $mode: $(sed 's/.*"revision": "\([^"]*\)".*/\1/' <<<"$line")" ;;
      *) echo "$1 $2 $mode: no $4 in $line" >&2; return 1 ;;
    esac
  done
}

server everything 10 "$node" "$packages/server-everything/dist/index.js"
server filesystem 10 "$node" "$packages/server-filesystem/dist/index.js" "$work/files"
server memory 8 "$node" "$packages/server-memory/dist/index.js"
server python 2 "$python" "$here/server.py"

called everything.yaml echo '{"message": "hello there"}' "hello there"
called filesystem.yaml read_text_file "{\"path\": \"$work/files/note.txt\"}" "a line"
called memory.yaml read_graph '{}' entities
called python.yaml add_note '{"text": "milk"}' "added: milk"

# Curated: one tool of many, under a name and words of ours.
"$twodoor" import mcp --name sums --only get-sum --out sums.yaml -- "$node" "$packages/server-everything/dist/index.js" 2>/dev/null
sed -i 's/^  get_sum:/  add:/; s/^    description: .*/    description: Adds two whole numbers./; s/^    title: .*//' sums.yaml
"$twodoor" check sums.yaml >/dev/null
called sums.yaml add '{"a": 2, "b": 3}' ' is 5'

# Another list than the reviewed one: nothing of it is offered.
sed -i 's/^    digest: "sha256:../    digest: "sha256:00/' sums.yaml
if "$python" "$root/tests/interop/client.py" auto add '{"a": 2, "b": 3}' "$twodoor" serve sums.yaml >drifted 2>&1; then
  echo "a list that nobody reviewed is served" >&2
  exit 1
fi
grep -q '"error"\|"isError": true' drifted || { cat drifted >&2; exit 1; }
echo "   sums.yaml with another digest: refused"
