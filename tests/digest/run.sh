#!/usr/bin/env bash
# The vectors of docs/digest.md, recomputed in Python and in JavaScript, without any package.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
. "$root/tests/interop/cache.sh"
python3 tests/digest/verify.py
"$(node22)" tests/digest/verify.mjs
