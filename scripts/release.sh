#!/usr/bin/env bash
# Writes a release to dist/ with goreleaser (.goreleaser.yaml): archives, packages, manifests, checksums.
#
#	scripts/release.sh --snapshot   # publishes nothing; parts that this machine cannot build are skipped and named
#	scripts/release.sh              # publishes the tag of this commit: .github/workflows/release.yml does so
set -uo pipefail
cd "$(dirname "$0")/.."

skip=()
if [ "${1:-}" = --snapshot ]; then
	docker info >/dev/null 2>&1 || { echo "skipped: images: a snapshot puts them into a Docker daemon; none answers" && skip+=(ko); }
	type -P syft >/dev/null || { echo "skipped: SBOMs: syft is not on the PATH" && skip+=(sbom); }
	type -P nix-hash >/dev/null || { echo "skipped: Nix package: nix-hash is not on the PATH" && skip+=(nix); }
fi
exec go run github.com/goreleaser/goreleaser/v2@v2.14.0 release --clean "$@" --skip="$(IFS=, && echo "${skip[*]}")"
