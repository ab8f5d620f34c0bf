#!/usr/bin/env bash
# Installs the programs that llmtop is tested with into a cache folder, and prints the shell lines that set their
# locations for the tests:
#
#	eval "$(scripts/peers.sh)"                       # all: 15 minutes on two cores, then from the cache
#	eval "$(scripts/peers.sh llamacpp prometheus)"   # only some
#	go test -v -run Absent ./runtime/source/peer            # lists what is installed and what is missing
#
# llamacpp      llama.cpp's libraries, as llmtop itself installs them. Needs npm.
# llama-server  llama-server and llama-quantize, built from the source in the npm package node-llama-cpp. Needs npm,
#               git, a C++ compiler, cmake and ninja; installs the last two from Debian if possible.
# llama-bench   llama-bench of the same source, linked with the libraries that llmtop loads, because builds with other
#               compilers differ in speed. Needs llamacpp and a C++ compiler.
# llama-shared  llama-server of the same source, linked with the libraries that llmtop loads: a shared build. Needs
#               llamacpp, cmake and ninja.
# ollama        Ollama, built by go install; it starts that llama-server as its engine. Needs a C compiler.
# prometheus    from the PATH, or Debian's package, unpacked into the cache folder but not installed.
# collector     an OpenTelemetry Collector (tools/collector), built with Go.
# openai        the openai client for Node.js (scripts/openai.sh). Needs npm.
# packagers     rpm and pacman, which scripts/packages.sh installs packages with; from the PATH, or Debian's packages.
# arm64         qemu and the C library for arm64, which scripts/arm64.sh runs tests with: Debian's packages.
#
# Downloads use the ordinary clients with their settings, and are verified with the hashes pinned here. If a part cannot
# be installed, the script prints the reason, installs the other parts, and exits with code 1.
set -uo pipefail
cd "$(dirname "$0")/.."

cache=${LLMTOP_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/llmtop/peers}
mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || exit 1

source_version=3.22.1 # of node-llama-cpp: llama.cpp v0.5.0
source_sha512=6e5b488a9b9699cd76dc7eed30880318a4ac4ab866865418795502e3c5d38d55bb5c624988927209d95333343f2e25a83e4183a5c2f816f883a60c3ba9f4e20f
ollama_version=v0.33.0
ollama_sum=h1:eBW81lwwaxeIDaw9U17xbqpttik6QBn7sVavoRfzyqk=

say() { echo "peers: $*" >&2; }
note() { echo "export $1='$2'"; }

# logged FILE WHAT COMMAND...: runs a command with its output in a file; if it fails, prints the end of the file.
logged() {
	local file=$1 what=$2
	shift 2
	"$@" >"$file" 2>&1 && return
	say "cannot $what; the end of $file:"
	tail -n 15 "$file" >&2
	return 1
}

have() { # have PROGRAM...: whether all are on the PATH; names those that are not
	local program missing=()
	for program in "$@"; do type -P "$program" >/dev/null || missing+=("$program"); done
	[ ${#missing[@]} -eq 0 ] || { say "not on the PATH: ${missing[*]}"; return 1; }
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt_update() { [ -n "${apt_updated:-}" ] || as_root apt-get update && apt_updated=1; }

debian() { # debian PROGRAM PACKAGE: installs Debian's package if the program is not on the PATH
	type -P "$1" >/dev/null && return
	type -P apt-get >/dev/null || { say "not on the PATH: $1"; return 1; }
	logged "$cache/apt.log" "install Debian's $2" as_root apt-get install -y --no-install-recommends "$2" && return
	logged "$cache/apt.log" "update the list of Debian's packages" apt_update || return 1
	logged "$cache/apt.log" "install Debian's $2" as_root apt-get install -y --no-install-recommends "$2"
}

get_llamacpp() {
	local said dir
	have npm || return 1
	said=$(XDG_DATA_HOME=$cache go run . engine install llamacpp) || return 1
	dir=$(sed -n 's/^llama\.cpp .*: //p' <<<"$said")
	[ -d "$dir" ] || { say "llmtop engine install llamacpp said: $said"; return 1; }
	libraries=$dir
	note LLMTOP_LLAMA_DIR "$dir"
}

# The build is for this CPU, to be as fast as the libraries that llmtop loads. Each CPU has its own folder.
processor=$( (grep -m1 '^flags' /proc/cpuinfo || uname -m) 2>/dev/null | cksum | cut -d' ' -f1)
server=$cache/llama-server-$source_version-$processor

work=$cache/build

# source_of_llama puts the source of llama.cpp into $work/src until this script ends.
source_of_llama() {
	local tgz=$work/node-llama-cpp-$source_version.tgz
	[ ! -d "$work/src" ] || return 0
	have npm git c++ sha512sum && mkdir -p "$work" || return 1
	logged "$cache/llama-fetch.log" "fetch node-llama-cpp" \
		npm pack "node-llama-cpp@$source_version" --pack-destination "$work" --loglevel=error || return 1
	echo "$source_sha512  $tgz" | sha512sum --check --quiet >&2 || { say "$tgz does not match the pinned hash"; return 1; }
	tar -C "$work" -xzf "$tgz" package/llama/gitRelease.bundle || return 1
	rm -rf "$work/clone" &&
		git -c advice.detachedHead=false clone -q "$work/package/llama/gitRelease.bundle" "$work/clone" &&
		mv "$work/clone" "$work/src"
}

get_llama_server() {
	if [ ! -x "$server/llama-server" ]; then
		debian cmake cmake && debian ninja ninja-build && source_of_llama && build_server || return 1
	fi
	note LLMTOP_PEER_LLAMA_SERVER "$server/llama-server"
}

build_server() {
	local program flags="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16" # a virtual machine may report AMX but not permit it
	cc $flags -E -x c /dev/null >/dev/null 2>&1 || flags=
	say "building llama-server; progress is in $cache/llama-build.log"
	logged "$cache/llama-configure.log" "configure llama.cpp" \
		cmake -S "$work/src" -B "$work/out" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_UI=OFF \
		-DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
		-DLLAMA_BUILD_APP=OFF -DGGML_CCACHE=OFF -DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" || return 1
	logged "$cache/llama-build.log" "build llama.cpp" nice ninja -C "$work/out" llama-server llama-quantize || return 1
	mkdir -p "$server" || return 1
	for program in llama-quantize llama-server; do # llama-server last: it shows that all are installed
		cp "$work/out/bin/$program" "$server/$program.new" && mv "$server/$program.new" "$server/$program" || return 1
	done
}

get_llama_bench() {
	local folder=$cache/llama-bench-$source_version
	if [ ! -x "$folder/llama-bench" ]; then
		get_llamacpp >/dev/null && source_of_llama && build_bench "$folder" || return 1
	fi
	note LLMTOP_PEER_LLAMA_BENCH "$folder/llama-bench"
}

build_bench() { # next to links to the libraries, where it looks for the CPU-specific ones
	local src=$work/src
	rm -rf "$1" && mkdir -p "$1" && ln -s "$libraries"/lib*.so "$1" || return 1
	logged "$cache/llama-bench.log" "build llama-bench" nice c++ -std=c++17 -O2 -DNDEBUG \
		-I"$src/include" -I"$src/ggml/include" -I"$src/common" -I"$src/vendor" "$src"/tools/llama-bench/*.cpp \
		-o "$1/llama-bench.new" "$1"/libllama-common.so "$1"/libllama.v*.so "$1"/libggml.v*.so "$1/libggml-base.so" \
		-Wl,-rpath,'$ORIGIN' -pthread && mv "$1/llama-bench.new" "$1/llama-bench"
}

get_llama_shared() {
	local folder=$cache/llama-shared-$source_version
	if [ ! -x "$folder/llama-server" ]; then
		debian cmake cmake && debian ninja ninja-build && get_llamacpp >/dev/null && source_of_llama &&
			build_shared "$folder" || return 1
	fi
	note LLMTOP_PEER_LLAMA_SHARED "$folder/llama-server"
}

build_shared() { # compiles what the libraries do not have: the server, images, HTTP
	local out=$work/shared objects
	rm -rf "$1" && mkdir -p "$1" && ln -s "$libraries"/lib*.so "$1" || return 1
	logged "$cache/llama-shared.log" "configure llama.cpp" \
		cmake -S "$work/src" -B "$out" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DBUILD_SHARED_LIBS=OFF \
		-DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DGGML_CCACHE=OFF || return 1
	objects=$(ninja -C "$out" -t targets all | sed -n 's/^\(.*\.o\): .*/\1/p' |
		grep -E '/(mtmd|server-context|llama-server-impl|llama-server|cpp-httplib|llama-ui|vendor-hash)\.dir/')
	logged "$cache/llama-shared.log" "compile the server" nice ninja -C "$out" $objects || return 1
	(cd "$out" && logged "$cache/llama-shared.log" "link the server" c++ -o "$1/llama-server.new" $objects \
		"$1"/libllama-common.so "$1"/libllama.v*.so "$1"/libggml.v*.so "$1/libggml-base.so" -Wl,-rpath,'$ORIGIN' -pthread) &&
		mv "$1/llama-server.new" "$1/llama-server"
}

get_ollama() {
	local root=$cache/ollama-$ollama_version sum program
	if [ ! -x "$root/bin/ollama" ]; then
		have cc || return 1
		sum=$(go mod download -json "github.com/ollama/ollama@$ollama_version" | sed -n 's/.*"Sum": "\(.*\)".*/\1/p')
		[ "$sum" = "$ollama_sum" ] ||
			{ say "Ollama $ollama_version has the hash '$sum', which does not match the pinned hash"; return 1; }
		say "building Ollama"
		logged "$cache/ollama.log" "build Ollama" env CGO_ENABLED=1 GOBIN="$root/bin" nice go install -trimpath \
			-ldflags "-s -w -X github.com/ollama/ollama/version.Version=${ollama_version#v}" \
			"github.com/ollama/ollama@$ollama_version" || return 1
	fi
	[ -x "$server/llama-server" ] || { say "Ollama needs llama-server"; return 1; }
	mkdir -p "$root/lib/ollama" || return 1
	for program in llama-server llama-quantize; do ln -sf "$server/$program" "$root/lib/ollama/$program" || return 1; done
	note LLMTOP_PEER_OLLAMA "$root/bin/ollama"
}

get_prometheus() {
	local program root=$cache/prometheus
	program=$(type -P prometheus) || program=$root/usr/bin/prometheus
	if [ ! -x "$program" ]; then
		have apt-get dpkg-deb && mkdir -p "$root" || return 1
		fetch_prometheus "$root" >/dev/null 2>&1 ||
			logged "$cache/apt.log" "update the list of Debian's packages" apt_update || return 1
		logged "$cache/apt.log" "fetch Debian's prometheus" fetch_prometheus "$root" || return 1
		dpkg-deb -x "$root"/prometheus_*.deb "$root" && rm -f "$root"/prometheus_*.deb || return 1
	fi
	note LLMTOP_PEER_PROMETHEUS "$program"
}

fetch_prometheus() { (cd "$1" && apt-get download prometheus); } # skips a file that exists

get_collector() {
	local folder=$cache/collector
	mkdir -p "$folder" || return 1
	logged "$cache/collector.log" "build the OpenTelemetry Collector" nice go -C tools/collector build -trimpath -o "$folder/collector" . || return 1
	note LLMTOP_PEER_COLLECTOR "$folder/collector"
}

get_openai() { scripts/openai.sh; }

get_packagers() { debian rpm rpm && debian pacman pacman-package-manager; }

get_arm64() { [ "$(uname -m)" != x86_64 ] || { debian qemu-aarch64-static qemu-user-static && debian /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1 libc6-arm64-cross; }; }

absent=()
if command -v flock >/dev/null; then # one run at a time
	exec 9>"$cache/lock" && flock 9
fi
[ $# -gt 0 ] || set -- llamacpp llama-server llama-bench llama-shared ollama prometheus collector openai packagers arm64
for part in "$@"; do
	case $part in
	llamacpp | llama-server | llama-bench | llama-shared | ollama | prometheus | collector | openai | packagers | arm64) ;;
	*) say "there is no $part: llamacpp, llama-server, llama-bench, llama-shared, ollama, prometheus, collector, openai, packagers, arm64" && exit 2 ;;
	esac
	"get_${part//-/_}" 9>&- || { say "ABSENT: $part, for the reason above"; absent+=("$part"); }
done
rm -rf "$work"
[ ${#absent[@]} -eq 0 ] || { say "absent: ${absent[*]}"; exit 1; }
