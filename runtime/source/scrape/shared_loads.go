package scrape

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/scrape/shm"
)

// sharedPattern is the endpoint name of the load snapshots in shared memory while no file is open.
const sharedPattern = "/dev/shm/sglang_loads_*.shm"

// locateEvery is the time between two searches for the file of a server. A search reads all processes.
const locateEvery = event.Time(15 * time.Second)

// sharedLoads reads the load of SGLang's schedulers from shared memory, without a request to the server. The file must
// be open in the process that listens at the server's address, or in one of its children. If that cannot be verified,
// no file is read.
type sharedLoads struct {
	server netip.AddrPort // address of the server; zero: it is on another machine
	find   func(at netip.AddrPort, wanted func(path string) bool) (string, error)

	handle    string // path that opens the file as long as the server has it open; "": not located
	name      string // of the file
	locatedAt event.Time
	why       string // why it is not read; "": it is read
}

// findOpenFile finds a file that the process listening at an address has open. Tests replace it.
var findOpenFile = discover.Opened

// newSharedLoads prepares to find the snapshots of the server at an address.
func newSharedLoads(address string) *sharedLoads {
	m := &sharedLoads{find: findOpenFile}
	m.server, _ = remote.LocalAddress(address)
	return m
}

// read returns the loads of all ranks, or nil if they cannot be read or nothing was written yet.
func (m *sharedLoads) read(now event.Time) []shm.RankLoad {
	if !m.server.IsValid() || m.handle == "" && m.locatedAt != 0 && now-m.locatedAt < locateEvery {
		return nil
	}
	if m.handle == "" {
		m.locate(now)
	}
	if m.handle == "" {
		return nil
	}
	list, err := m.readFile()
	switch {
	case err != nil:
		m.why = err.Error()
	case len(list) == 0:
		m.why = "no data written yet"
	default:
		m.why = ""
	}
	return list
}

// locate searches for the file.
func (m *sharedLoads) locate(now event.Time) {
	m.locatedAt = now
	handle, err := m.find(m.server, shm.IsSnapshot)
	if err != nil {
		m.why = err.Error()
		return
	}
	name, err := os.Readlink(handle)
	if err != nil {
		m.why = "the file was deleted"
		return
	}
	m.handle, m.name = handle, name
}

// readFile reads the file. If the server's process no longer has it open, the next read searches again.
func (m *sharedLoads) readFile() ([]shm.RankLoad, error) {
	name, err := os.Readlink(m.handle)
	if err != nil || name != m.name {
		m.handle = ""
		return nil, errors.New("the server process closed it")
	}
	file, err := os.OpenFile(m.handle, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		m.handle = ""
		return nil, errors.New("permission denied")
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return shm.Read(file)
}

// addTo adds the snapshots to the endpoints of a report.
func (m *sharedLoads) addTo(report *event.Aggregates) {
	switch {
	case !m.server.IsValid():
	case m.handle != "" && m.why == "":
		addEndpoint(report, m.name, "")
	default:
		addEndpoint(report, sharedPattern, m.why)
	}
}
