package host

import (
	"bytes"
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// ticks is the unit of CPU times in /proc: 100 per second on every Linux that Go supports.
const ticks = 100

// coreTimes are the ticks of one core since the system started.
type coreTimes struct{ busy, stolen, total uint64 }

// parseCores parses /proc/stat: one entry for each online core, appended to dst.
func parseCores(dst []coreTimes, stat []byte) []coreTimes {
	for line := range bytes.Lines(stat) {
		if len(line) < 4 || !bytes.HasPrefix(line, []byte("cpu")) || line[3] < '0' || line[3] > '9' {
			continue
		}
		var c coreTimes
		for i, f := range bytes.Fields(line)[1:] {
			n := number(f)
			if i < 8 { // the guest times that follow are already counted in user time
				c.total += n
			}
			if i == 7 {
				c.stolen = n
			}
			if i < 8 && i != 3 && i != 4 { // neither idle nor waiting for I/O
				c.busy += n
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// number parses an unsigned number; 0 for anything else.
func number(b []byte) uint64 {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// processTimes holds values of /proc/PID/stat.
type processTimes struct {
	state   byte // 'T': stopped by a signal, 't': by a debugger
	parent  int
	cpu     uint64 // ticks
	faults  uint64 // major page faults
	minor   uint64 // minor page faults
	threads uint64
	started uint64 // ticks since the machine started
}

// parseProcess parses /proc/PID/stat. The name in it may contain any character, including brackets and spaces.
func parseProcess(stat []byte) (p processTimes, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return p, false
	}
	f := bytes.Fields(stat[end+1:])
	if len(f) < 20 {
		return p, false
	}
	return processTimes{
		state: f[0][0], parent: int(number(f[1])),
		cpu: number(f[11]) + number(f[12]), faults: number(f[9]), minor: number(f[7]), threads: number(f[17]), started: number(f[19]),
	}, true
}

// schedstat holds the times of a thread since it began, in ns, and how often it got a core.
type schedstat struct{ run, wait, times uint64 }

// parseSchedstat parses /proc/PID/task/TID/schedstat.
func parseSchedstat(raw []byte) schedstat {
	onCore, rest, _ := bytes.Cut(raw, []byte(" "))
	waited, times, _ := bytes.Cut(rest, []byte(" "))
	return schedstat{run: number(onCore), wait: number(waited), times: number(bytes.TrimSpace(times))}
}

// per returns the increase of a counter per second: NotYet without an interval, 0 for a counter that was reset.
func per(now, before uint64, seconds float64) event.Reading {
	if seconds <= 0 {
		return event.Absent(event.NotYet)
	}
	if now < before {
		return event.MeasuredValue(0)
	}
	return measured(float64(now-before) / seconds)
}

// measured returns a number that the system reports, or its absence if it is not plausible. None is negative.
func measured(v float64) event.Reading {
	if v < 0 || !event.Plausible(v) {
		return event.Absent(event.NotReported)
	}
	return event.MeasuredValue(v)
}

// since returns busy/total of an interval, NaN if no time has passed.
func (c coreTimes) since(before coreTimes) float64 {
	if c.total <= before.total {
		return math.NaN()
	}
	return math.Min(float64(c.busy-min(before.busy, c.busy))/float64(c.total-before.total), 1)
}

// parseNetwork sums the received and sent bytes of all interfaces of /proc/net/dev except the loopback.
func parseNetwork(dev []byte) (received, sent uint64, ok bool) {
	for line := range bytes.Lines(dev) {
		name, rest, found := bytes.Cut(line, []byte(":"))
		if !found || string(bytes.TrimSpace(name)) == "lo" {
			continue
		}
		if f := bytes.Fields(rest); len(f) >= 9 {
			received, sent, ok = received+number(f[0]), sent+number(f[8]), true
		}
	}
	return received, sent, ok
}

// parseClocks returns the frequency of each core in Hz from /proc/cpuinfo; none if the kernel does not report it there.
func parseClocks(info []byte) (clocks []float64) {
	for line := range bytes.Lines(info) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(name)) == "cpu MHz" {
			if mhz, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64); err == nil && measured(mhz*1e6).OK() {
				clocks = append(clocks, mhz*1e6)
			}
		}
	}
	return clocks
}
