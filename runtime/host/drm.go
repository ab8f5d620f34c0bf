package host

import (
	"bufio"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// drmEngine is an engine of a GPU, as one client of the driver uses it.
type drmEngine struct {
	address string // of the GPU
	client  string
	engine  string // "compute"
}

// drmUse is what clients use of GPUs.
type drmUse struct {
	memory map[string]map[string]float64 // bytes by address and region
	busy   map[drmEngine]float64         // s, or the share of the engine's cycles so far
	cycles map[drmEngine]float64         // cycles in all of engines that count these; the busy ones are in busy
	blind  map[string][2]bool            // by address: a client whose memory, and one whose time, the driver does not count
	kfd    bool                          // a process computes past the driver's clients, through /dev/kfd
	denied bool
}

// shareDRM sets the engine's memory and share of the GPUs that have an address, those of AMD and Intel, from
// /proc/PID/fdinfo of the files that its processes opened in /dev/dri. What others use is not reported: their files can be
// read by root only.
func (c *gpuShares) shareDRM(root string, gpus []event.GPU, pids []int) {
	use := readDRM(root, pids)
	now := time.Now()
	since := now.Sub(c.at).Seconds()
	for i := range gpus {
		g := &gpus[i]
		if g.Address == "" {
			continue
		}
		if use.denied {
			g.EngineMem, g.EngineUtil = event.Absent(event.NotPermitted), event.Absent(event.NotPermitted)
			continue
		}
		total := 0.0
		for region, bytes := range use.memory[g.Address] {
			if g.Unified && region != "cpu" || strings.HasPrefix(region, "vram") || strings.HasPrefix(region, "local") {
				total += bytes
			}
		}
		blind := use.blind[g.Address]
		if g.EngineMem = measured(total); blind[0] {
			g.EngineMem = event.Absent(event.NotReported)
		}
		switch {
		case use.kfd, blind[1]: // its time is not counted
			g.EngineUtil = event.Absent(event.NotReported)
		case c.at.IsZero():
			g.EngineUtil = event.Absent(event.NotYet)
		default:
			g.EngineUtil = c.busiest(&use, g.Address, since)
		}
	}
	c.at, c.before = now, use
}

// busiest returns the busy time of the engine that the clients used most since the last reading.
func (c *gpuShares) busiest(use *drmUse, address string, since float64) event.Reading {
	shares, most := make(map[string]float64), 0.0
	for e, now := range use.busy {
		before, known := c.before.busy[e]
		if e.address != address || !known || now < before {
			continue
		}
		time := since
		if all, counted := use.cycles[e]; counted {
			time = all - c.before.cycles[e]
		}
		if time > 0 {
			shares[e.engine] += (now - before) / time
		}
	}
	for _, v := range shares {
		most = max(most, v)
	}
	return measured(min(most, 1))
}

func newDRMUse() drmUse {
	return drmUse{
		memory: make(map[string]map[string]float64), busy: make(map[drmEngine]float64), cycles: make(map[drmEngine]float64),
		blind: make(map[string][2]bool),
	}
}

// readDRM reads the clients of processes. A client that several files or processes share counts once.
func readDRM(root string, pids []int) drmUse {
	use := newDRMUse()
	seen := make(map[[2]string]bool)
	for _, pid := range pids {
		folder := filepath.Join(root, "proc", strconv.Itoa(pid))
		files, err := os.ReadDir(filepath.Join(folder, "fd"))
		use.denied = use.denied || os.IsPermission(err)
		for _, f := range files {
			opened, _ := os.Readlink(filepath.Join(folder, "fd", f.Name()))
			use.kfd = use.kfd || opened == "/dev/kfd"
			if strings.HasPrefix(opened, "/dev/dri/") {
				use.add(Fields(filepath.Join(folder, "fdinfo", f.Name()), "drm-"), seen)
			}
		}
	}
	return use
}

// Fields returns the values of lines such as "drm-engine-gfx:	123 ns" in a file, by the names before the colon without
// a prefix that they must have; nil if it cannot be read.
func Fields(name, prefix string) map[string]string {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	fields := make(map[string]string)
	for lines := bufio.NewScanner(file); lines.Scan() && len(fields) < 256; {
		key, value, found := strings.Cut(lines.Text(), ":")
		if key, ok := strings.CutPrefix(key, prefix); ok && found {
			fields[key] = strings.TrimSpace(value)
		}
	}
	return fields
}

// add adds the fields of a client.
func (u *drmUse) add(fields map[string]string, seen map[[2]string]bool) {
	address, client := fields["pdev"], fields["client-id"]
	key := [2]string{address, client}
	if address == "" || client == "" || seen[key] {
		return
	}
	seen[key] = true
	memory := u.memory[address]
	if memory == nil {
		memory = make(map[string]float64)
		u.memory[address] = memory
	}
	resident := slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(key string) bool { return strings.HasPrefix(key, "resident-") })
	size := "memory-" // of older kernels
	if resident {
		size = "resident-"
	}
	blind, strange := [2]bool{true, true}, false
	for name, value := range fields {
		number, unit, _ := strings.Cut(value, " ")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !event.PlausibleReading(v) {
			continue
		}
		if region, ok := strings.CutPrefix(name, size); ok {
			bytes, known := drmUnits[unit]
			memory[region] += v * bytes
			blind[0], strange = false, strange || !known
		} else if engine, ok := strings.CutPrefix(name, "total-cycles-"); ok {
			u.cycles[drmEngine{address, client, engine}] = v * capacity(fields, engine)
		} else if engine, ok := strings.CutPrefix(name, "cycles-"); ok {
			u.busy[drmEngine{address, client, engine}] = v
			blind[1] = false
		} else if engine, ok := strings.CutPrefix(name, "engine-"); ok && unit == "ns" {
			u.busy[drmEngine{address, client, engine}] = v / 1e9 / capacity(fields, engine)
			blind[1] = false
		}
	}
	u.blind[address] = [2]bool{u.blind[address][0] || blind[0] || strange, u.blind[address][1] || blind[1]}
}

// drmUnits are the units of memory, in bytes.
var drmUnits = map[string]float64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// capacity returns how many engines share a name: their times are summed.
func capacity(fields map[string]string, engine string) float64 {
	if n, err := strconv.ParseFloat(fields["engine-capacity-"+engine], 64); err == nil && n >= 1 {
		return n
	}
	return 1
}
