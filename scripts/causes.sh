#!/usr/bin/env bash
# Plants causes of slow tokens on real runs of llmtop and prints, as a Markdown table, which causes llmtop named:
#
#	scripts/causes.sh                       # all, about 4 minutes, on a machine that does nothing else
#	scripts/causes.sh disk_cold queue       # only some
#	scripts/causes.sh list                  # their names
#	LLMTOP=path scripts/causes.sh           # with this llmtop instead of one built from the source
#
# Needs root for control groups. Those that it makes and changes are restored when it ends. Runs last some seconds, however
# fast the machine is. A cause is planted if the kernel says so after the run: otherwise, and if it cannot be planted on
# this machine, its row has the reason. The exit code is 1 if a planted cause was not named.
set -uo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
groups=()     # to be removed
helpers=()    # processes to be ended
remount=""    # controller of version 1 to be mounted again
cores=$(nproc)
demo=(--temp 0 --ctx 65536 -n 60000) # of the built-in model, so that no text ends early
wrong=0

end() {
	for p in "${helpers[@]}"; do kill -CONT "$p" 2>/dev/null; kill "$p" 2>/dev/null; done
	wait 2>/dev/null
	for ((i = ${#groups[@]} - 1; i >= 0; i--)); do rmdir "${groups[i]}" 2>/dev/null; done
	groups=()
	if [[ $remount ]]; then
		echo "-$remount" >"$unified/cgroup.subtree_control" 2>/dev/null
		for _ in 1 2 3 4 5 6 7 8 9 10; do # the tree of version 2 lets go of the controller after a while
			mount -t cgroup -o "$remount" cgroup "/sys/fs/cgroup/$remount" 2>/dev/null && break
			sleep 0.5
		done
		remount=""
	fi
	helpers=()
}
trap 'end; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

say() { echo "causes: $*" >&2; }

llmtop=${LLMTOP:-$scratch/llmtop}
[[ ${LLMTOP:-} ]] || go build -o "$llmtop" . || exit 2
go build -o "$scratch/causes" ./scripts/testdata/causes || exit 2

unified=$(findmnt -nt cgroup2 -o TARGET | head -n 1)

# total FILE [KEY]: prints a counter of the kernel: of the line KEY, or total= of the line "some" of a pressure file.
total() {
	awk -v key="${2:-some}" '$1 == key { n = $NF; sub("total=", "", n); print n }' "$1" 2>/dev/null | grep . || echo 0
}

# A check of what the kernel says prints why a cause was not planted, or nothing. It knows $before, the state at the start.
waited_cpu() { # 10 % of the run
	local ms=$((($(total /proc/pressure/cpu) - before_cpu) / 1000))
	[[ ! -e /proc/pressure/cpu || $ms -gt $((100 * seconds)) ]] || echo "tasks waited $ms ms for a core"
}
waited_io() {
	local ms=$((($(total /proc/pressure/io) - before_io) / 1000))
	[[ ! -e /proc/pressure/io || $ms -gt 300 ]] || echo "tasks waited $ms ms for storage"
}
throttled() {
	local stat=${group## }/cpu.stat
	local ms=$((($(total "$stat" throttled_time) / 1000 + $(total "$stat" throttled_usec)) / 1000))
	[[ $ms -gt $((100 * seconds)) ]] || echo "the group was throttled for $ms ms"
}
refaulted() {
	local stat=${group## }/memory.stat key=workingset_refault_file
	[[ ${group} == *"$unified"/* ]] || key=total_$key
	[[ $(total "$stat" "$key") -gt 10000 ]] || echo "the group read only $(total "$stat" "$key") pages again"
}
slow() { # nothing is lost from 20 tokens/s on
	local ms
	ms=$(awk -F'[:,]' '/"tpot_s"/ { printf "%.0f", 1000 * $2; exit }' "$scratch/report.json")
	[[ ${ms:-0} -gt 55 ]] || echo "a token took ${ms:-0} ms, which is not slow"
}
stopped() { [[ $(wc -l <"$scratch/stops") -ge 4 ]] || echo "the process was in state T $(wc -l <"$scratch/stops") times"; }

# planted CAUSE KEYS ARGUMENTS...: runs llmtop for some $seconds in $group, if set, and prints the row of the run.
planted() {
	local cause=$1 keys=$2 before_cpu before_io why="" command
	shift 2
	before_cpu=$(total /proc/pressure/cpu) before_io=$(total /proc/pressure/io)
	seconds=${seconds:-4} command="${shown:-}${attached:-run} ${*//$scratch\//}"
	rm -f "$scratch/report.json" "$scratch/run.llmtop"
	(
		for g in ${group:-}; do echo "$BASHPID" >"$g/cgroup.procs" || exit 1; done
		[[ ${attached:-} ]] && set -- attach "$@" || set -- run --seed 1 "$@"
		exec timeout --foreground -s INT -k 20 "$seconds" "$llmtop" "$@" --headless --out "$scratch/report.json" --out "$scratch/run.llmtop" \
			>"$scratch/out" 2>&1
	) &
	run=$!
	[[ ${during:-} ]] && "$during" "$run"
	wait "$run"
	[[ ${check:-} ]] && why=$("$check")
	end
	local row
	if ! row=$("$scratch/causes" row "$cause" "$command" "$scratch/report.json" "$scratch/run.llmtop" "$keys" "$why"); then
		row="| $cause | \`$command\` | no report: $(tail -n 1 "$scratch/out") | no | |"
	fi
	[[ $row == *" | no | "* ]] && wrong=1
	echo "$row"
	group="" during="" shown="" check="" seconds="" attached=""
}

# impossible CAUSE WHY: prints the row of a cause that cannot be planted here.
impossible() {
	echo "| $1 | | | not planted: $2 | |"
	end
	group="" during="" shown="" check="" seconds=""
}

# background COMMAND...: runs a command until the end of the run.
background() {
	"$@" >/dev/null 2>&1 &
	helpers+=($!)
}

# model FILE LAYERS: writes a model of random weights once.
model() { [[ -f $scratch/$1 ]] || "$scratch/causes" model "$scratch/$1" "$2"; }

# uncached FILE: drops a file from the page cache.
uncached() { sync "$1" && dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 status=none; }

# v1 CONTROLLER FILE=VALUE...: makes a group of version 1 with these settings and adds it to $group.
v1() {
	local mount dir=""
	mount=$(findmnt -nt cgroup -O "$1" -o TARGET | head -n 1)
	[[ $mount ]] && dir=$mount/llmtop-causes-$$ && mkdir "$dir" 2>/dev/null || return 1
	groups+=("$dir")
	for setting in "${@:2}"; do echo "${setting#*=}" >"$dir/${setting%%=*}" || return 1; done
	group="${group:-} $dir"
}

# v2 CONTROLLER FILE=VALUE...: the same of version 2. A controller that version 1 has is moved, if nothing uses it there.
v2() {
	local dir=$unified/llmtop-causes-$$
	[[ $unified ]] || { why="cgroup2 is not mounted"; return 1; }
	if ! grep -qw "$1" "$unified/cgroup.controllers"; then
		if [[ $(find "/sys/fs/cgroup/$1" -mindepth 1 -type d 2>/dev/null | head -n 1) ]]; then
			why="groups of version 1 use the controller $1"
			return 1
		fi
		umount "/sys/fs/cgroup/$1" 2>/dev/null || { why="version 1 keeps the controller $1"; return 1; }
		remount=$1
		for _ in 1 2 3 4 5 6; do
			grep -qw "$1" "$unified/cgroup.controllers" && break
			sleep 0.5
		done
	fi
	if ! echo "+$1" >"$unified/cgroup.subtree_control" 2>/dev/null || ! mkdir "$dir"; then
		why="the controller $1 cannot be enabled in version 2"
		return 1
	fi
	groups+=("$dir")
	for setting in "${@:2}"; do echo "${setting#*=}" >"$dir/${setting%%=*}" || return 1; done
	group=$dir
}

# words N: prints a prompt of N words.
words() { for ((i = 0; i < $1; i++)); do printf 'the sea and the whale '; done; }

healthy() { planted "none (healthy)" none "${demo[@]}" -p sea; }

other_processes() {
	for ((i = 0; i < cores; i++)); do background bash -c 'while :; do :; done'; done
	check=waited_cpu shown="$cores busy loops & "
	planted "other processes" other_processes "${demo[@]}" -p sea
}

second_run() {
	background "$llmtop" run --headless "${demo[@]}" -p whale
	check=waited_cpu shown="llmtop run … & "
	planted "a second llmtop" other_processes "${demo[@]}" -p sea
}

own_threads() { planted "too many threads" own_threads "${demo[@]}" --threads $((4 * cores)) -p sea; }

cpu_quota_v1() {
	v1 cpu cpu.cfs_period_us=100000 cpu.cfs_quota_us=30000 || { impossible "CPU quota, version 1" "no tree of version 1"; return; }
	check=throttled shown="cpu.cfs_quota_us=30000: "
	planted "CPU quota, version 1" cpu_quota "${demo[@]}" -p sea
}

cpu_quota_v2() {
	v2 cpu cpu.max="30000 100000" || { impossible "CPU quota, version 2" "$why"; return; }
	check=throttled shown="cpu.max=30000: "
	planted "CPU quota, version 2" cpu_quota "${demo[@]}" -p sea
}

# squeeze sets the limit of memory in $group a second after the model was read: llmtop loads no model that does not fit.
squeeze() {
	local dir=${group## } size used
	size=$(stat -c %s "$scratch/small.gguf")
	for ((i = 0; i < 60; i++)); do
		used=$(cat "$dir"/memory.usage_in_bytes "$dir"/memory.current)
		[[ $used -ge $size ]] && break
		sleep 0.1
	done
	sleep 1
	for file in memory.limit_in_bytes memory.max; do
		[[ -e $dir/$file ]] && for ((i = 0; i < 20; i++)); do echo 300000000 >"$dir/$file" && break; sleep 0.1; done
	done
} 2>/dev/null

memory_limit_v1() {
	model small.gguf 9 || return
	uncached "$scratch/small.gguf" # the group that reads the pages has them in its account
	v1 memory || { impossible "memory limit, version 1" "no tree of version 1"; return; }
	during=squeeze check=refaulted seconds=10 shown="memory.limit_in_bytes=300000000 after 1 s: "
	planted "memory limit, version 1" memory_limit "$scratch/small.gguf" -p "w300 w301" -n 2000
}

memory_limit_v2() {
	model small.gguf 9 || return
	uncached "$scratch/small.gguf"
	v2 memory || { impossible "memory limit, version 2" "$why"; return; }
	during=squeeze check=refaulted seconds=10 shown="memory.max=300000000 after 1 s: "
	planted "memory limit, version 2" memory_limit "$scratch/small.gguf" -p "w300 w301" -n 2000
}

disk_cold() {
	model large.gguf 19 || return
	uncached "$scratch/large.gguf"
	check=waited_io seconds=15
	planted "cold page cache" disk_reads "$scratch/large.gguf" -p "w300 w301" -n 4
}

disk_slow() {
	local device
	model small.gguf 9 || return
	device=$(lsblk -ndo MAJ:MIN "$(findmnt -nT "$scratch" -o SOURCE)" 2>/dev/null | tr -d ' ')
	[[ $device ]] && v1 blkio blkio.throttle.read_bps_device="$device 100000000" ||
		{ impossible "slow disk" "no blkio of version 1 for the device of $scratch"; return; }
	shown="blkio.throttle.read_bps_device=100000000: "
	uncached "$scratch/small.gguf"
	check=waited_io seconds=15
	planted "slow disk" disk_reads "$scratch/small.gguf" -p "w300 w301" -n 4
}

prompt_of_other() {
	words 500 >"$scratch/long.txt"
	planted "long prompt of another request" prompt_of_other "${demo[@]}" --parallel 2 -p sea -f "$scratch/long.txt" -n 800
}

queue() {
	seconds=10
	planted "queue" queue "${demo[@]}" --parallel 1 -p one -p two -p three -p four -p five -p six -n 3000
}

pacing() {
	seconds=15
	planted "pacing" pacing "${demo[@]}" --parallel 1 --pace 40 -p one -p two -p three -p four -n 100
}

# bursts PID: stops the engine's child, or llmtop itself without one, for 100 ms at a time, and notes each stop that the
# kernel shows.
bursts() {
	local pid=$1 child
	: >"$scratch/stops"
	sleep 1
	pid=$(pgrep -P "$pid" | head -n 1 || true) # timeout's child is llmtop
	child=$(pgrep -P "${pid:-0}" | head -n 1)
	for ((i = 0; i < 8; i++)); do
		kill -STOP "${child:-$pid}" 2>/dev/null || break
		sleep 0.1
		grep -h '^State:.T' "/proc/${child:-$pid}/status" >>"$scratch/stops"
		kill -CONT "${child:-$pid}" 2>/dev/null
		sleep 0.15
	done
}

stopped_child() {
	during=bursts check=stopped shown="kill -STOP, -CONT: "
	planted "child process stopped" stopped "${demo[@]}" --isolated -p sea
}

stopped_self() {
	during=bursts check=stopped shown="kill -STOP, -CONT: "
	planted "llmtop stopped" stopped "${demo[@]}" -p sea
}

memory_bandwidth() {
	model huge.gguf 40 || return
	cat "$scratch/huge.gguf" >/dev/null
	check=slow seconds=6
	planted "memory bandwidth" memory_bandwidth "$scratch/huge.gguf" -p "w300 w301" -n 2000
}

gc() {
	export GOGC=1
	shown="GOGC=1 "
	planted "garbage collection" gc,llmtop,none "${demo[@]}" -p one -p two -p three -p four --parallel 4
	unset GOGC
}

# imitated BYTES: starts a program that imitates llama.cpp with CUDA, and hands over that many bytes a layer.
imitated() {
	local from=runtime/source/probe/testdata/cuda
	cc -shared -fPIC -o "$scratch/libcudart.so.13" "$from/cudart.c" && cc -shared -fPIC -o "$scratch/libcuda.so.1" -x c /dev/null &&
		cc -O1 -o "$scratch/llama" "$from/llama.c" -Wl,--no-as-needed "$scratch/libcudart.so.13" "$scratch/libcuda.so.1" -Wl,-rpath,"$scratch" || return 1
	background "$scratch/llama" "$1" --cpu-moe
	sleep 1
}

gpu_copies() {
	imitated 4000000 || { impossible "copies to and from the GPU" "no C compiler"; return; }
	seconds=15 attached=attach shown="llama … --cpu-moe & "
	planted "copies to and from the GPU" gpu_copies "pid:${helpers[-1]}"
}

clock() {
	local policy
	policy=$(compgen -G "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq" | head -n 1)
	[[ $policy ]] || { impossible "lower clock" "this machine has no cpufreq"; return; }
	local before lowest
	before=$(cat "$policy") lowest=$(cat "${policy%/*}/cpuinfo_min_freq")
	for f in /sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq; do echo "$lowest" >"$f"; done
	shown="scaling_max_freq=$lowest: "
	planted "lower clock" throttled_clock "${demo[@]}" -p sea
	for f in /sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq; do echo "$before" >"$f"; done
}

all=(healthy other_processes second_run own_threads cpu_quota_v1 cpu_quota_v2 memory_limit_v1 memory_limit_v2 disk_cold disk_slow
	prompt_of_other queue pacing stopped_child stopped_self gc gpu_copies clock memory_bandwidth)
if [[ ${1:-} == list ]]; then
	printf '%s\n' "${all[@]}"
	exit
fi
[[ $# -gt 0 ]] || set -- "${all[@]}"
echo "| planted | command | llmtop named, by share of the lost time | right? | evidence |"
echo "|---|---|---|---|---|"
for plant; do
	if [[ " ${all[*]} " != *" $plant "* ]]; then
		say "no such cause: $plant; see: scripts/causes.sh list"
		exit 2
	fi
	"$plant"
done
exit $wrong
