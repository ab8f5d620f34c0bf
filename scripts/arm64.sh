#!/usr/bin/env bash
# Runs the tests as programs for arm64 under qemu: its floating point fuses operations that amd64 rounds one by one.
# Needs qemu-aarch64-static and the C library for arm64 (Debian: qemu-user-static, libc6-arm64-cross).
#
#	scripts/arm64.sh                     # all packages but those below
#	scripts/arm64.sh ./profiler/metric   # one
set -uo pipefail
cd "$(dirname "$0")/.."

qemu=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
if [ "$(uname -sm)" != "Linux x86_64" ] || ! type -P "${qemu[0]}" >/dev/null || [ ! -d "${qemu[2]}" ]; then
	echo "skipped: needs Linux on amd64, ${qemu[0]}, and Debian's libc6-arm64-cross" && exit 0
fi

# Left out, and why. qemu starts the test, but not what the test starts: that needs binfmt, which needs root.
left_out=(
	'cmd(/|$)'                         # start the program, or themselves
	'runtime/engine/(chat|child)$'     # start themselves
	'runtime/engine/llama'             # load llama.cpp's libraries, which are those for amd64 here
	'runtime/engine/native(/tensor)?$' # take too long: arm64 has no kernels, and qemu is slow
	'runtime/source/peer$'             # starts real servers
	'sdk(/|$)'                         # start compilers and their programs
)
# NVML: the compiler of the test builds a library for amd64. Cached: qemu does not pass on which pages are in memory.
# Others of the host and the socket start themselves, or look up their own socket in /proc, which qemu does not pass on.
# Colours: a library's choice between the 256 of a terminal falls otherwise on a tie of two distances.
# Sweeps draw every screen at every size, which takes qemu minutes, by the code that the goldens draw with.
# Live packets and their filter: qemu does not pass on the sockets' options.
# The rest apply millions of events to see what memory they take, which is no question of the processor.
skip='TestNVML|TestEnergyByNVML|TestCachedExperts|^TestID$|^TestPID$|TestEngineKilledInTheMiddleOfALine|TestSocketOfAKilledEngine'
skip+='|TestReaderIsStopped|TestGoldenProfiles/^256$|TestMaxOpenIsBounded|TestOverflowAboveMaxOpen|TestMemoryIsStable|TestPastOfMaxOpen|TestMillionOpen|TestExtend$|^TestLive$|TestBesideProxy|TestSweep|TestEveryKeyInEveryState'

[ $# -gt 0 ] || mapfile -t packages < <(go list ./... | grep -vE "llmtop/($(IFS='|' && echo "${left_out[*]}"))")
export GOOS=linux GOARCH=arm64 CGO_ENABLED=0
go test -exec "${qemu[*]}" -skip "$skip" "${packages[@]}" "$@"
