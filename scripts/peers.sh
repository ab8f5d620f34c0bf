#!/usr/bin/env bash
# Installs the engines that llmtop is measured against into a cache folder, and prints the shell line that tells the
# tests where they are:
#
#	eval "$(scripts/peers.sh)"
#	go test ./runtime/native -run '^$' -bench Peer
#
# Today that is libllama of llama.cpp release v0.5.0, from the npm package @node-llama-cpp (the npm client fetches it from
# whatever registry it is set up for; the archive is checked against the hash below). Needs npm, tar and openssl.
set -euo pipefail

package=@node-llama-cpp/linux-x64
version=3.22.1
sha512=5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==
cache=${LLMTOP_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/llmtop/peers}
dir=$cache/llamacpp-$version

if [ "$(uname -sm)" != "Linux x86_64" ]; then
	echo "peers.sh: $package is for Linux on x86-64, this is $(uname -sm)" >&2
	exit 1
fi

if [ ! -e "$dir/bins/linux-x64/libllama.v0.5.0.so" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && npm pack --silent "$package@$version" >/dev/null)
	archive=$(echo "$work"/*.tgz)
	got=$(openssl dgst -sha512 -binary "$archive" | base64 -w0)
	if [ "$got" != "$sha512" ]; then
		echo "peers.sh: $package@$version has SHA-512 $got, expected $sha512" >&2
		exit 1
	fi
	tar -xzf "$archive" -C "$work"
	mkdir -p "$cache"
	rm -rf "$dir"
	mv "$work/package" "$dir"
fi

echo "export LLMTOP_LLAMA_DIR='$dir/bins/linux-x64'"
