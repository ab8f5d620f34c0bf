#!/usr/bin/env bash
# Checks what goreleaser wrote to dist/: installs each Linux package for this machine in an empty root, runs the program
# there, and removes it again; runs the programs of the archives; parses the manifests of package managers.
#
#	scripts/release.sh --snapshot
#	scripts/packages.sh
#
# Needs root for chroot. What cannot be checked here is printed with the reason.
set -uo pipefail
cd "$(dirname "$0")/../dist" || exit 1

case $(uname -s)/$(uname -m) in
Linux/x86_64) go_arch=amd64 ;;
Linux/aarch64) go_arch=arm64 ;;
*) echo "skipped: these are Linux packages for amd64 and arm64; this is $(uname -sm)" && exit 0 ;;
esac
[ "$(id -u)" = 0 ] || { echo "skipped: installing in an empty root needs root" && exit 0; }

version=$(sed -n 's/.*"version":"\([^"]*\)".*/\1/p' metadata.json)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

fail() { echo "FAILED: $*"; failed=1; }
have() { type -P "$1" >/dev/null || { echo "skipped: $2: $1 is not on the PATH"; return 1; }; }
find_one() { compgen -G "$1" | head -n 1 | grep . || { fail "no file $1"; return 1; } }

empty_root() { # with the C library, if the program to run needs it
	local file
	rm -rf "$root" && mkdir -p "$root"/{tmp,root,dev} || return 1
	[ "$1" = glibc ] || return 0
	for file in $(ldd llmtop_linux_"$go_arch"*/llmtop | grep -o '/[^ ]*'); do
		mkdir -p "$root/${file%/*}" && cp -L "$file" "$root/$file" || return 1
	done
}

# runs WHAT PROGRAM: whether the program in the root has the version, and generates text with its model.
runs() {
	local said
	said=$(chroot "$root" "$2" version 2>&1) && [[ $said == *"$version"* ]] || { fail "$1: version: $said"; return 1; }
	said=$(env -i HOME=/root "$(type -P chroot)" "$root" "$2" run --headless -n 4 -p hi 2>&1) || { fail "$1: run: $said"; return 1; }
}

belongs() { # belongs WHAT FILE...: whether the files were installed
	local what=$1 file
	shift
	for file in usr/bin/llmtop usr/share/man/man1/llmtop.1 usr/share/man/man1/llmtop-bench.1 \
		usr/share/bash-completion/completions/llmtop usr/share/fish/vendor_completions.d/llmtop.fish \
		usr/share/doc/llmtop/licenses/go/LICENSE "$@"; do
		[ -s "$root/$file" ] || fail "$what: $file is missing"
	done
}

removed() { # removed WHAT: whether none of its files is left
	local left
	left=$(find "$root" -path '*/usr/*' -name '*llmtop*')
	[ -z "$left" ] || fail "$1: left behind: $left"
}

try_deb() {
	local file
	file=$(find_one "llmtop_*_linux_$go_arch.deb") && have dpkg deb && empty_root glibc || return
	mkdir -p "$root"/var/lib/dpkg/{info,updates} && touch "$root"/var/lib/dpkg/{status,available}
	dpkg --root="$root" --log=/dev/null --force-depends -i "$file" 2>&1 | grep -v '^dpkg: warning\|^ llmtop depends\|Package libc6\|^$' # the root has libc6, but not as a package
	belongs deb usr/share/zsh/vendor-completions/_llmtop usr/share/doc/llmtop/copyright
	runs deb /usr/bin/llmtop && dpkg --root="$root" --log=/dev/null -P llmtop || fail "deb"
	removed deb && echo "deb: installed, run, removed"
}

try_rpm() {
	local file
	file=$(find_one "llmtop_*_linux_$go_arch.rpm") && have rpm rpm && empty_root glibc || return
	rpm --root "$root" --initdb && rpm --root "$root" --nodeps --nosignature -i "$PWD/$file" || fail "rpm: install"
	belongs rpm usr/share/zsh/site-functions/_llmtop usr/share/licenses/llmtop/LICENSE
	runs rpm /usr/bin/llmtop && rpm --root "$root" -e llmtop || fail "rpm"
	removed rpm && echo "rpm: installed, run, removed"
}

try_arch() {
	local file pacman
	file=$(find_one "llmtop_*_linux_$go_arch.pkg.tar.zst") && have pacman archlinux && empty_root glibc || return
	pacman=(pacman --root "$root" --config /dev/null --noconfirm --noprogressbar)
	mkdir -p "$root"/var/lib/pacman
	"${pacman[@]}" -Udd "$file" || fail "archlinux: install"
	belongs archlinux usr/share/zsh/site-functions/_llmtop usr/share/licenses/llmtop/LICENSE
	runs archlinux /usr/bin/llmtop && "${pacman[@]}" -Rdd llmtop || fail "archlinux"
	removed archlinux && echo "archlinux: installed, run, removed"
}

try_apk() { # its program needs nothing but the kernel
	local file
	file=$(find_one "llmtop_*_linux_$go_arch.apk") && empty_root empty || return
	if type -P apk >/dev/null; then
		apk --root "$root" --initdb --allow-untrusted --no-network add "$file" || fail "apk: install"
	else
		echo "apk: extracted, because apk is not on the PATH"
		tar -C "$root" -xzf "$file" 2>/dev/null || fail "apk: extract"
	fi
	belongs apk usr/share/zsh/site-functions/_llmtop usr/share/licenses/llmtop/LICENSE
	runs apk /usr/bin/llmtop || return
	type -P apk >/dev/null || { echo "apk: run in an empty root; not installed, not removed" && return; }
	apk --root "$root" --no-network del llmtop || fail "apk: remove"
	removed apk && echo "apk: installed, run, removed"
}

try_archive() { # try_archive SUFFIX ROOT
	local file what="archive$1"
	file=$(find_one "llmtop_*_linux_$go_arch$1.tar.gz") && empty_root "$2" && tar -C "$root" -xzf "$file" || return
	[ -s "$root/man/llmtop.1" ] && [ -s "$root/completions/llmtop.bash" ] && [ -s "$root/LICENSE" ] && [ -s "$root/licenses/go/LICENSE" ] || fail "$what: files"
	runs "$what" /llmtop && echo "$what: run"
}

try_manifests() {
	local file
	if have python3 "scoop"; then
		python3 -m json.tool scoop/llmtop.json >/dev/null || fail "scoop: JSON"
	fi
	if have ruby "cask"; then ruby -c homebrew/Casks/llmtop.rb || fail "cask: Ruby"; fi
	for file in homebrew/Casks/llmtop.rb scoop/llmtop.json winget/manifests/*/*/*/*/*.installer.yaml; do
		grep -q "$(sha256sum llmtop_*_windows_amd64.zip llmtop_*_darwin_arm64.tar.gz | cut -c1-64 | paste -sd'|' | sed 's/|/\\|/')" "$file" ||
			fail "$file: the hash of its archive is missing"
	done
	sha256sum --check --quiet checksums.txt || fail "checksums"
}

try_deb
try_rpm
try_arch
try_apk
try_archive "" glibc
try_archive _static empty
try_manifests
exit $failed
