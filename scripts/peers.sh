#!/usr/bin/env bash
# Installs the engines that llmtop is measured against into a cache folder, and prints the shell line that tells the
# tests where they are:
#
#	eval "$(scripts/peers.sh)"
#	go test ./runtime/native -run '^$' -bench Peer
#
# Today that is llama.cpp, as llmtop itself installs it: fetched by the npm client from whatever registry it is set up for,
# and compared with the hash that is pinned in the source. Needs npm.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${LLMTOP_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/llmtop/peers}
said=$(XDG_DATA_HOME=$cache go run . engine install llamacpp)
echo "export LLMTOP_LLAMA_DIR='$(sed -n 's/^llama\.cpp .*: //p' <<<"$said")'"
