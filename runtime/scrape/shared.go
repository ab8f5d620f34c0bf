package scrape

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/scrape/snapshot"
)

// sharedName is what the snapshots in shared memory are called where it is said whether they are read.
const sharedName = "/dev/shm/sglang_loads_*.shm"

// seekAgain is how long it takes until it is looked anew for the file of a server of which none was found: that looks at all processes.
const seekAgain = event.Time(15 * time.Second)

// shared reads where SGLang's schedulers stand out of shared memory, without a question to the server. Which file is a server's says the process that
// listens at its address: one that it, or a process that it has started, has open. Where that cannot be said none is read.
type shared struct {
	at   netip.AddrPort // of the server; the zero value: it is on another machine
	find func(at netip.AddrPort, wanted func(path string) bool) (string, error)

	handle string // at which the file can be opened as long as it is the server's; "": none is known
	name   string // of the file
	sought event.Time
	why    string // it is not read
}

// opened finds out which file is whose. Tests have their own.
var opened = discover.Opened

// newShared prepares to look for the snapshots of the server at an address.
func newShared(address string) *shared {
	m := &shared{find: opened}
	m.at, _ = api.LocalAddress(address)
	return m
}

// read reads where the ranks stand, nil if that cannot be read, or nothing was written yet.
func (m *shared) read(now event.Time) []snapshot.Load {
	if !m.at.IsValid() || m.handle == "" && m.sought != 0 && now-m.sought < seekAgain {
		return nil
	}
	if m.handle == "" {
		m.seek(now)
	}
	if m.handle == "" {
		return nil
	}
	list, err := m.open()
	switch {
	case err != nil:
		m.why = err.Error()
	case len(list) == 0:
		m.why = "nothing has been written there yet"
	default:
		m.why = ""
	}
	return list
}

// seek looks for the file.
func (m *shared) seek(now event.Time) {
	m.sought = now
	handle, err := m.find(m.at, snapshot.Named)
	if err != nil {
		m.why = err.Error()
		return
	}
	name, err := os.Readlink(handle)
	if err != nil {
		m.why = "the file is gone"
		return
	}
	m.handle, m.name = handle, name
}

// open reads the file. If it is not what the server's process has open any more, it is looked for anew.
func (m *shared) open() ([]snapshot.Load, error) {
	name, err := os.Readlink(m.handle)
	if err != nil || name != m.name {
		m.handle = ""
		return nil, errors.New("the server's process has closed it")
	}
	file, err := os.OpenFile(m.handle, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		m.handle = ""
		return nil, errors.New("it may not be read")
	}
	defer file.Close()
	if about, err := file.Stat(); err != nil || !about.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	return snapshot.Read(file)
}

// tell says in a report whether the snapshots are read.
func (m *shared) tell(report *event.Report) {
	switch {
	case !m.at.IsValid():
	case m.handle != "" && m.why == "":
		from(report, m.name, "")
	default:
		from(report, sharedName, m.why)
	}
}
