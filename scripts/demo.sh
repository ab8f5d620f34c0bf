#!/usr/bin/env bash
# Creates docs/demo.cast and docs/demo.svg: a real run of the built-in model, controlled by docs/demo.toml. Takes half a
# minute, the length of the demo, and needs only Go:
#
#	scripts/demo.sh
#
# The numbers are measured on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
go build -o "$scratch/bin/llmtop" .
rm -f docs/demo.cast docs/demo.svg
XDG_CONFIG_HOME=$scratch TZ=UTC "$scratch/bin/llmtop" cast docs/demo.cast --out docs/demo.svg \
	--script docs/demo.toml --size 120x36 --text --parallel 2
