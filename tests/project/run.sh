#!/usr/bin/env bash
# The example project: its curated and its operator surface through the official clients, in both eras, over every
# transport, and what `probe` and `verify` say of them.
#
#   tests/project/run.sh TWODOOR
set -euo pipefail
twodoor=$(realpath "${1:?the twodoor binary}")
cd "$(dirname "$0")/../.."
root=$PWD
. tests/interop/cache.sh

fill_openpyxl() { fill_venv "$1" "$root/tests/project/requirements.txt"; }
venv=$(cached project-python fill_openpyxl "$root/tests/project/requirements.txt")

work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
cp -R examples/project "$work/project"
rm -rf "$work/project/.venv"
ln -s "$venv" "$work/project/.venv"

echo "   curated" >&2
TOOL=read_sheet ARGS='{"path":"data/sales.xlsx","max_results":2}' \
  tests/interop/run.sh "$twodoor" "$work/project/sheets.yaml"
echo "   operator" >&2
TOOL=capabilities ARGS='{"search":"sheet"}' tests/interop/run.sh "$twodoor" "$work/project/operator.yaml"

echo "   both in one process" >&2
"$twodoor" serve "$work/project/sheets.yaml" "$work/project/operator.yaml" --http 127.0.0.1:0 2>"$work/server.log" &
server=$!
url=$(await_url "$work/server.log" "$server")
for surface in sheets operator; do
  digest=$("$twodoor" digest "$work/project/$surface.yaml" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["digest"])')
  "$twodoor" probe "$url/$surface"
  "$twodoor" verify "$url/$surface" "$digest" --era modern
  "$twodoor" verify "$url/$surface" "$digest" --era legacy
done
