#!/usr/bin/env bash
# Other people's tools against the example surfaces: mcp-assert, the Inspector's command line and fastmcp.
#
#   conformance/tools.sh [TWODOOR]        default: the debug build
#
# Fails if a tool reports a failure, is given another list than the surface's, or ends the server.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
here=$root/conformance/tools
. "$root/tests/interop/cache.sh"

fill_python() { fill_venv "$1" "$here/requirements.txt"; }
fill_inspector() { fill_npm "$1" "$here"; }
if [ $# = 0 ]; then
  cargo build --quiet --locked
  set -- "${CARGO_TARGET_DIR:-$root/target}/debug/twodoor"
fi
python=$(cached tools-python fill_python "$here/requirements.txt")
node=$(node22)
inspector=$(cached tools-npm fill_inspector "$here/package-lock.json")/node_modules/@modelcontextprotocol/inspector
"$python/bin/python" "$here/check.py" "$(realpath "$1")" "$python/bin" "$node" "$inspector"
