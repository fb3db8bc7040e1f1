# Sourced by run.sh, with `here`, `root` and `build` of it: builds the peers whose tool chains are here, and tells the
# load program by PEER_… where each stands. Downloads go to the cache and happen once.

skip() { echo "peer skipped: $1" >&2; }

peer_rust() {
  build "$here/peers/rust/Cargo.toml" && PEER_RUST=$CARGO_TARGET_DIR/release/peer && export PEER_RUST
}

fill_typescript_peer() { fill_npm "$1" "$here/peers/typescript"; }
peer_typescript() {
  local folder
  PEER_NODE=$(node22) &&
    folder=$(cached peer-npm fill_typescript_peer "$here/peers/typescript/package-lock.json") &&
    cp "$here/peers/typescript/server.mjs" "$folder" &&
    PEER_NODE_SCRIPT=$folder/server.mjs && export PEER_NODE PEER_NODE_SCRIPT
}

fill_python_peer() { fill_venv "$1" "$here/peers/python/requirements.txt"; }
peer_python() {
  local folder
  folder=$(cached peer-python fill_python_peer "$here/peers/python/requirements.txt") &&
    PEER_PYTHON=$folder/bin/python && export PEER_PYTHON
}

peer_rust || skip "rmcp does not build"
if command -v npm >/dev/null; then
  peer_typescript || skip "the TypeScript SDK cannot be installed"
else
  skip "TypeScript, as npm is not here"
fi
if command -v python3 >/dev/null; then
  peer_python || skip "the Python SDK cannot be installed"
else
  skip "Python, as python3 is not here"
fi
