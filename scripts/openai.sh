#!/usr/bin/env bash
# Installs the openai client for Node.js into a cache folder, and prints the shell line that sets its location for the
# proxy tests:
#
#	eval "$(scripts/openai.sh)"
#	go test ./runtime/source/proxy -run OpenAIClient -v
#
# Fetches it with npm from the configured registry and verifies it with the hash pinned here. Needs npm.
set -euo pipefail

version=7.57.0
hash=sha512-RbmrdE5NdfW6nGq/FaCJ3KFCZpotoExPzruQUSMCTw/ouUFO08vpvVdSmgmPxQMFAiv9EXZCEXvcWYU+n6NzsQ==
folder=${LLMTOP_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/llmtop/peers}/openai-$version

if [ ! -d "$folder/node_modules/openai" ]; then
	mkdir -p "$folder"
	npm install --prefix "$folder" --ignore-scripts --omit=peer --no-audit --no-fund --loglevel=error "openai@$version" >&2
fi
grep -qF "\"integrity\": \"$hash\"" "$folder/package-lock.json" || {
	echo "openai $version in $folder does not match the pinned hash: remove the folder" >&2
	exit 1
}
echo "export LLMTOP_OPENAI_CLIENT='$folder'"
