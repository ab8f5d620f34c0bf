#!/usr/bin/env bash
# Makes docs/demo.cast and docs/demo.svg: a real run of the built-in model, on which docs/demo.toml is performed. Takes as long as the demo
# lasts, half a minute, and needs Go alone:
#
#	scripts/demo.sh
#
# The numbers in it are those of the machine that it runs on.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
go build -o "$scratch/bin/llmtop" .
XDG_CONFIG_HOME=$scratch TZ=UTC "$scratch/bin/llmtop" record --cast docs/demo.cast --svg docs/demo.svg --script docs/demo.toml \
	--size 120x36 --cast-text --parallel 2
