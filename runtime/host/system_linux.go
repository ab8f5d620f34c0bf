package host

import (
	"bytes"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// linux reads /proc and /sys below root, which is "/" except in tests. Files that are read for every sample stay open.
type linux struct {
	root    string
	files   map[string]int // descriptors, by name
	buf     []byte
	cores   []coreTimes
	next    []coreTimes
	procs   map[int]*processState
	sums    map[string]uint64 // counters of the machine at the last sample, by name
	fastest event.Reading     // highest frequency of the cores, in Hz; zero before it is read

	affinity func(pid int, set *unix.CPUSet) error
}

// processState holds the counters of a process at the last sample.
type processState struct {
	times                          processTimes
	read, write, readOps, writeOps uint64
	threads                        map[int]threadState // by thread id
	voluntary, involuntary         uint64              // context switches of llmtop itself
	sampled                        bool

	groups         *cgroup.Groups // nil until the limits of the process are read
	throttled      uint64         // ns
	throttledKnown bool
}

func newSystem() system { return newLinux("/") }

func newLinux(root string) *linux {
	return &linux{root: root, files: map[string]int{}, buf: make([]byte, 16<<10), procs: map[int]*processState{}, sums: map[string]uint64{}, affinity: unix.SchedGetaffinity}
}

func (l *linux) close() {
	for _, fd := range l.files {
		_ = unix.Close(fd) // opened for reading only
	}
	clear(l.files)
}

// read returns the content of a file under root, valid until the next read. The file stays open until forgetFile, or until
// it cannot be read.
func (l *linux) read(name string) ([]byte, error) {
	fd, isOpen := l.files[name]
	if !isOpen {
		var err error
		if fd, err = l.open(name); err != nil {
			return nil, err
		}
		l.files[name] = fd
	}
	content, err := l.content(func(b []byte, at int) (int, error) { return unix.Pread(fd, b, int64(at)) })
	if len(content) == 0 {
		l.forgetFile(name)
	}
	return content, err
}

// forgetFile closes a file that read has opened.
func (l *linux) forgetFile(name string) {
	if fd, isOpen := l.files[name]; isOpen {
		_ = unix.Close(fd)
		delete(l.files, name)
	}
}

// readOnce is like read for a file that does not stay open, because it comes and goes.
func (l *linux) readOnce(name string) ([]byte, error) {
	fd, err := l.open(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return l.content(func(b []byte, _ int) (int, error) { return unix.Read(fd, b) })
}

func (l *linux) open(name string) (fd int, err error) {
	return uninterrupted(func() (int, error) { return unix.Open(filepath.Join(l.root, name), unix.O_RDONLY|unix.O_CLOEXEC, 0) })
}

// shortRead is a number of bytes below which a read has reached the end of a file of /proc or /sys: the kernel fills a page
// of 4 KiB unless the next record does not fit, and no record is longer than the rest of it.
const shortRead = 1 << 10

// content reads a file by read, which takes an offset. It makes as few system calls as it can: os.ReadFile makes ten, most
// of them to find out whether it can wait for the file. An empty file is an error.
func (l *linux) content(read func(b []byte, at int) (int, error)) ([]byte, error) {
	for end := 0; ; {
		n, err := uninterrupted(func() (int, error) { return read(l.buf[end:], end) })
		end += max(n, 0)
		switch {
		case end == 0 && err == nil:
			return nil, io.EOF
		case end == 0:
			return nil, err
		case n < shortRead:
			return l.buf[:end], nil
		case end == len(l.buf):
			l.buf = append(l.buf, make([]byte, end)...)
		}
	}
}

// uninterrupted repeats a system call until no signal interrupts it.
func uninterrupted(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (l *linux) machine(h *event.Host, since time.Duration) {
	h.CPU, h.Steal = event.Absent(event.NotYet), event.Absent(event.NotYet)
	if stat, err := l.read("proc/stat"); err != nil {
		h.CPU, h.Steal, h.Runnable = readFailure(err), readFailure(err), readFailure(err)
	} else {
		h.Runnable = event.Absent(event.NotReported)
		if n, ok := cgroup.Keyed(stat, "procs_running"); ok {
			h.Runnable = event.MeasuredValue(float64(n))
		}
		l.next = parseCores(l.next[:0], stat)
		if since > 0 && len(l.next) == len(l.cores) {
			h.Cores = make([]float64, 0, len(l.next))
			var sum float64
			var all, before coreTimes
			for i, c := range l.next {
				all.stolen, all.total = all.stolen+c.stolen, all.total+c.total
				before.stolen, before.total = before.stolen+l.cores[i].stolen, before.total+l.cores[i].total
				busy := c.since(l.cores[i])
				if math.IsNaN(busy) {
					busy = 0
				}
				h.Cores = append(h.Cores, busy)
				sum += busy
			}
			h.CPU = measured(sum / float64(len(l.next)))
			h.Steal = per(all.stolen, before.stolen, float64(all.total)-float64(before.total))
		}
		l.cores, l.next = l.next, l.cores
	}
	h.Clocks, h.Frequency = l.frequency()
	h.MaxClock, h.Thermal = l.maxClock(), l.thermal(since)
	h.Load1 = event.Absent(event.NotReported)
	if load, err := l.read("proc/loadavg"); err == nil {
		if v, err := strconv.ParseFloat(strings.SplitN(string(load), " ", 2)[0], 64); err == nil {
			h.Load1 = measured(v)
		}
	}
	l.network(h, since)
	l.pressure(h, since)
}

// frequency returns the frequency of each core and their mean, in Hz: from cpufreq if the kernel has it, otherwise from
// /proc/cpuinfo.
func (l *linux) frequency() (clocks []float64, mean event.Reading) {
	for i := range l.cores {
		khz, err := l.read(cpuFolder(i) + "cpufreq/scaling_cur_freq")
		if err != nil {
			break
		}
		clocks = append(clocks, measured(float64(number(bytes.TrimSpace(khz)))*1e3).V)
	}
	if len(clocks) == 0 {
		info, err := l.read("proc/cpuinfo")
		if err != nil {
			return nil, readFailure(err)
		}
		clocks = parseClocks(info)
	}
	if len(clocks) == 0 {
		return nil, event.Absent(event.NotReported)
	}
	var sum float64
	for _, hz := range clocks {
		sum += hz
	}
	return clocks, measured(sum / float64(len(clocks)))
}

// maxClock returns the highest frequency that the cores can have, in Hz, as a mean over the cores. It does not change.
func (l *linux) maxClock() event.Reading {
	if l.fastest != (event.Reading{}) || len(l.cores) == 0 {
		return l.fastest
	}
	var sum float64
	for i := range l.cores {
		khz, err := l.readOnce(cpuFolder(i) + "cpufreq/cpuinfo_max_freq")
		if err != nil {
			l.fastest = readFailure(err)
			return l.fastest
		}
		sum += float64(number(bytes.TrimSpace(khz))) * 1e3
	}
	l.fastest = measured(sum / float64(len(l.cores)))
	return l.fastest
}

// thermal returns how often cores and their packages were slowed because of their temperature, per second.
func (l *linux) thermal(since time.Duration) event.Reading {
	if len(l.cores) == 0 {
		return event.Absent(event.NotReported)
	}
	var sum uint64
	for i := range l.cores {
		for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
			count, err := l.read(cpuFolder(i) + "thermal_throttle/" + name)
			if err != nil {
				return readFailure(err)
			}
			sum += number(bytes.TrimSpace(count))
		}
	}
	return l.rate("thermal", sum, since.Seconds())
}

// cpuFolder returns the folder of a core.
func cpuFolder(i int) string { return "sys/devices/system/cpu/cpu" + strconv.Itoa(i) + "/" }

// memory reads the memory of the machine.
func (l *linux) memory(h *event.Host) {
	h.MemTotal, h.MemUsed = event.Absent(event.NotReported), event.Absent(event.NotReported)
	if info, err := l.read("proc/meminfo"); err != nil {
		h.MemTotal, h.MemUsed = readFailure(err), readFailure(err)
	} else {
		total, ok := cgroup.Keyed(info, "MemTotal")
		free, found := cgroup.Keyed(info, "MemAvailable")
		if ok {
			h.MemTotal = measured(float64(total) * 1024)
		}
		if ok && found {
			h.MemUsed = measured(float64(total-min(free, total)) * 1024)
		}
	}
}

func (l *linux) process(pid int, since time.Duration) event.Process {
	p := event.Process{PID: pid}
	state := l.procs[pid]
	if state == nil {
		state = &processState{}
		l.procs[pid] = state
	}
	seconds := since.Seconds()
	if !state.sampled {
		seconds = 0
	}
	state.sampled = true
	dir := "proc/" + strconv.Itoa(pid) + "/"
	l.processTimes(&p, state, dir, seconds)
	l.processMemory(&p, dir)
	l.processIO(&p, state, dir, seconds)
	l.processThreads(&p, state, dir, seconds)
	return p
}

func (l *linux) processTimes(p *event.Process, state *processState, dir string, seconds float64) {
	stat, err := l.read(dir + "stat")
	times, ok := parseProcess(stat)
	if err != nil || !ok {
		p.CPU, p.Faults, p.MinorFaults, p.Threads = readFailure(err), readFailure(err), readFailure(err), readFailure(err)
		return
	}
	p.CPU = per(times.cpu, state.times.cpu, seconds*ticks)
	p.Faults = per(times.faults, state.times.faults, seconds)
	p.MinorFaults = per(times.minor, state.times.minor, seconds)
	p.Threads = measured(float64(times.threads))
	state.times = times
}

func (l *linux) processMemory(p *event.Process, dir string) {
	status, err := l.read(dir + "status")
	if err != nil {
		p.RSS, p.Peak = readFailure(err), readFailure(err)
		return
	}
	p.RSS, p.Peak = event.Absent(event.NotReported), event.Absent(event.NotReported)
	if kb, ok := cgroup.Keyed(status, "VmRSS"); ok {
		p.RSS = measured(float64(kb) * 1024)
	}
	if kb, ok := cgroup.Keyed(status, "VmHWM"); ok {
		p.Peak = measured(float64(kb) * 1024)
	}
}

func (l *linux) processIO(p *event.Process, state *processState, dir string, seconds float64) {
	io, err := l.read(dir + "io")
	if err != nil {
		a := readFailure(err)
		p.Read, p.Write, p.ReadOps, p.WriteOps, p.ReadSum, p.WriteSum = a, a, a, a, a, a
		return
	}
	read, _ := cgroup.Keyed(io, "read_bytes")
	write, _ := cgroup.Keyed(io, "write_bytes")
	readOps, _ := cgroup.Keyed(io, "syscr")
	writeOps, _ := cgroup.Keyed(io, "syscw")
	p.Read, p.Write = per(read, state.read, seconds), per(write, state.write, seconds)
	p.ReadOps, p.WriteOps = per(readOps, state.readOps, seconds), per(writeOps, state.writeOps, seconds)
	p.ReadSum, p.WriteSum = measured(float64(read)), measured(float64(write))
	state.read, state.write, state.readOps, state.writeOps = read, write, readOps, writeOps
}

// threads sums the CPU time of threads of this process, in s.
func (l *linux) threads(ids []int) event.Reading {
	var sum float64
	for _, id := range ids {
		stat, err := l.read(ownThread(id))
		times, ok := parseProcess(stat)
		if err != nil || !ok {
			return event.Absent(event.NotReported)
		}
		sum += float64(times.cpu) / ticks
	}
	return measured(sum)
}
