#!/usr/bin/env bash
# Plants causes of slow tokens on real runs of llmtop and prints, as a Markdown table, which causes llmtop named:
#
#	scripts/causes.sh                       # all, about 4 minutes, on a machine that does nothing else
#	scripts/causes.sh disk_cold queue       # only some
#	scripts/causes.sh list                  # their names
#	LLMTOP=path scripts/causes.sh           # with this llmtop instead of one built from the source
#
# Needs root for control groups, and stress-ng, which it installs from Debian if it can. Control groups that it makes and
# changes are restored when it ends. A cause that cannot be planted on this machine is a row with the reason. The exit code
# is 1 if a planted cause was not named.
set -uo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
groups=()     # to be removed
helpers=()    # processes to be ended
remount=""    # controller of version 1 to be mounted again
cores=$(nproc)
demo=(--temp 0 --ctx 4096) # of the built-in model, so that no text ends early
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

# planted CAUSE KEYS ARGUMENTS...: runs llmtop in $group, if set, and prints the row of the run.
planted() {
	local cause=$1 keys=$2
	shift 2
	rm -f "$scratch/report.json" "$scratch/run.llmtop"
	(
		for g in ${group:-}; do echo "$BASHPID" >"$g/cgroup.procs" || exit 1; done
		exec timeout 15 "$llmtop" run --headless --seed 1 --json "$scratch/report.json" --record "$scratch/run.llmtop" "$@" \
			>"$scratch/out" 2>&1
	) &
	run=$!
	[[ ${during:-} ]] && "$during" "$run"
	wait "$run"
	end
	local row
	if ! row=$("$scratch/causes" row "$cause" "${shown:-}run ${*//$scratch\//}" "$scratch/report.json" "$scratch/run.llmtop" "$keys"); then
		row="| $cause | \`run ${*//$scratch\//}\` | no report: $(tail -n 1 "$scratch/out") | no | |"
	fi
	[[ $row == *" | yes | "* ]] || wrong=1
	echo "$row"
	group="" during="" shown=""
}

# impossible CAUSE WHY: prints the row of a cause that cannot be planted here.
impossible() {
	echo "| $1 | | | not planted: $2 | |"
	end
	group="" during="" shown=""
}

# background COMMAND...: runs a command until the end of the run.
background() {
	"$@" >/dev/null 2>&1 &
	helpers+=($!)
}

# stress ARGUMENTS...: runs stress-ng until the end of the run.
stress() {
	if ! command -v stress-ng >/dev/null; then
		say "installing stress-ng"
		apt-get install -y stress-ng >"$scratch/apt.log" 2>&1 || return 1
	fi
	background stress-ng --timeout 30s "$@"
	sleep 0.5
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

healthy() { planted "none (healthy)" none "${demo[@]}" -p sea -n 3000; }

other_processes() {
	stress --cpu "$cores" || { impossible "other processes" "stress-ng is not installed"; return; }
	shown="stress-ng --cpu $cores & "
	planted "other processes" other_processes "${demo[@]}" -p sea -n 600
}

second_run() {
	background "$llmtop" run --headless "${demo[@]}" -p whale -n 4000
	shown="llmtop run … & "
	planted "a second llmtop" other_processes "${demo[@]}" -p sea -n 1500
}

own_threads() { planted "too many threads" own_threads "${demo[@]}" --threads $((4 * cores)) -p sea -n 600; }

cpu_quota_v1() {
	v1 cpu cpu.cfs_period_us=100000 cpu.cfs_quota_us=50000 || { impossible "CPU quota, version 1" "no tree of version 1"; return; }
	shown="cpu.cfs_quota_us=50000: "
	planted "CPU quota, version 1" cpu_quota "${demo[@]}" -p sea -n 1000
}

cpu_quota_v2() {
	v2 cpu cpu.max="50000 100000" || { impossible "CPU quota, version 2" "$why"; return; }
	shown="cpu.max=50000: "
	planted "CPU quota, version 2" cpu_quota "${demo[@]}" -p sea -n 1000
}

# squeeze sets the limit of memory in $group after a second: llmtop loads no model that does not fit.
squeeze() {
	sleep 1
	for file in memory.limit_in_bytes memory.max; do
		[[ -e ${group## }/$file ]] && for _ in 1 2 3 4 5; do echo 300000000 >"${group## }/$file" && break; sleep 0.1; done
	done
} 2>/dev/null

memory_limit_v1() {
	model small.gguf 9 || return
	uncached "$scratch/small.gguf" # the group that reads the pages has them in its account
	v1 memory || { impossible "memory limit, version 1" "no tree of version 1"; return; }
	during=squeeze shown="memory.limit_in_bytes=300000000 after 1 s: "
	planted "memory limit, version 1" memory_limit "$scratch/small.gguf" -p "w300 w301" -n 60
}

memory_limit_v2() {
	model small.gguf 9 || return
	uncached "$scratch/small.gguf"
	v2 memory || { impossible "memory limit, version 2" "$why"; return; }
	during=squeeze shown="memory.max=300000000 after 1 s: "
	planted "memory limit, version 2" memory_limit "$scratch/small.gguf" -p "w300 w301" -n 60
}

disk_cold() {
	model large.gguf 19 || return
	uncached "$scratch/large.gguf"
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
	planted "slow disk" disk_reads "$scratch/small.gguf" -p "w300 w301" -n 4
}

prompt_of_other() {
	words 500 >"$scratch/long.txt"
	planted "long prompt of another request" prompt_of_other "${demo[@]}" --parallel 2 -p sea -f "$scratch/long.txt" -n 800
}

queue() {
	planted "queue" queue "${demo[@]}" --parallel 1 -p one -p two -p three -p four -p five -p six -n 300
}

pacing() {
	planted "pacing" pacing "${demo[@]}" --parallel 1 --pace 40 -p one -p two -p three -p four -n 100
}

# bursts PID: stops the engine's child, or llmtop itself without one, for 100 ms at a time.
bursts() {
	local pid=$1 child
	sleep 0.5
	pid=$(pgrep -P "$pid" | head -n 1 || true) # timeout's child is llmtop
	child=$(pgrep -P "${pid:-0}" | head -n 1)
	for ((i = 0; i < 8; i++)); do
		kill -STOP "${child:-$pid}" 2>/dev/null || break
		sleep 0.1
		kill -CONT "${child:-$pid}" 2>/dev/null
		sleep 0.15
	done
}

stopped_child() {
	during=bursts
	shown="kill -STOP, -CONT: "
	planted "child process stopped" stopped "${demo[@]}" --isolated -p sea -n 3000
}

stopped_self() {
	during=bursts
	shown="kill -STOP, -CONT: "
	planted "llmtop stopped" stopped "${demo[@]}" -p sea -n 3000
}

memory_bandwidth() {
	model large.gguf 19 || return
	cat "$scratch/large.gguf" >/dev/null
	planted "memory bandwidth" memory_bandwidth "$scratch/large.gguf" -p "w300 w301" -n 40
}

gc() {
	export GOGC=1
	shown="GOGC=1 "
	planted "garbage collection" gc,llmtop,none "${demo[@]}" -p one -p two -p three -p four --parallel 4 -n 1500
	unset GOGC
}

clock() {
	local policy
	policy=$(compgen -G "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq" | head -n 1)
	[[ $policy ]] || { impossible "lower clock" "this machine has no cpufreq"; return; }
	local before lowest
	before=$(cat "$policy") lowest=$(cat "${policy%/*}/cpuinfo_min_freq")
	for f in /sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq; do echo "$lowest" >"$f"; done
	shown="scaling_max_freq=$lowest: "
	planted "lower clock" throttled_clock "${demo[@]}" -p sea -n 1000
	for f in /sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq; do echo "$before" >"$f"; done
}

all=(healthy other_processes second_run own_threads cpu_quota_v1 cpu_quota_v2 memory_limit_v1 memory_limit_v2 disk_cold disk_slow
	prompt_of_other queue pacing stopped_child stopped_self gc clock memory_bandwidth)
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
