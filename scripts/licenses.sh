#!/usr/bin/env bash
# Writes to licenses/ the licence, and the notice if there is one, of every module that the program links on any system,
# and of Go. The archives and packages of a release contain the folder.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf licenses
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
# With -trimpath it would not know Go's own packages, and take all for those.
GOFLAGS=-trimpath=false GOBIN=$tool go install github.com/google/go-licenses@v1.6.0
for system in linux darwin windows; do
	GOOS=$system GOARCH=amd64 CGO_ENABLED=0 "$tool/go-licenses" save . --save_path "$tool/$system" 2>"$tool/log" || { cat "$tool/log"; exit 1; }
	mkdir -p licenses && cp -R "$tool/$system/." licenses/
done
mkdir -p licenses/go && cp "$(go env GOROOT)/LICENSE" licenses/go/
