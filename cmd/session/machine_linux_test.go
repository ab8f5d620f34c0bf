package session

import (
	"os"
	"os/exec"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host"
)

// hosts keeps the last sample of a machine.
type hosts struct{ last *event.Host }

func (h *hosts) Emit(e event.Event) { h.last = e.Data.(*event.Host) }

// TestMachineOfServers checks that each server on this machine gets the usage of its own process, none if the process
// is unknown, and that all get the rest; the process of a server is searched again after it ended.
func TestMachineOfServers(t *testing.T) {
	server := exec.Command("sleep", "600")
	if err := server.Start(); err != nil {
		t.Skipf("no sleep to be the process of a server: %v", err)
	}
	t.Cleanup(func() { _, _ = server.Process.Kill(), server.Wait() })
	var one, same, other, portless hosts
	m := &Machine{owners: map[uint16]int{8000: server.Process.Pid, 9000: os.Getpid()}, family: host.NewFamily(), searchedAt: 1e9}
	t.Cleanup(m.Close)
	m.Add("http://127.0.0.1:8000", &one)
	m.Add("http://localhost:8000/v1", &same)
	m.Add("http://127.0.0.1:8001", &other)
	m.Add("https://localhost", &portless)
	var known hosts
	pid := 0
	m.AddProcess(func() int { return pid }, &known)
	sample := func(at event.Time) {
		m.Emit(event.Event{Kind: event.KindHost, At: at, Data: &event.Host{CPU: event.MeasuredValue(0.5), Engine: event.Process{PID: 1, RSS: event.MeasuredValue(1)}}})
	}
	sample(2e9)
	sample(3e9)
	if list := m.ProcessesOf(func() int { return pid })(); known.last != nil || list != nil {
		t.Errorf("a process that is not known yet gets %+v, and the threads of %v", known.last, list)
	}
	pid = server.Process.Pid
	sample(3.5e9)
	if known.last == nil || known.last.Engine.PID != pid || len(m.ProcessesOf(func() int { return pid })()) == 0 {
		t.Errorf("a known process gets %+v", known.last)
	}
	for name, h := range map[string]*hosts{"the server": &one, "the same by another name": &same} {
		if p := h.last.Engine; p.PID != server.Process.Pid || !p.CPU.OK() || p.RSS.V <= 0 || h.last.CPU.V != 0.5 {
			t.Errorf("%s gets %+v", name, h.last)
		}
	}
	for name, h := range map[string]*hosts{"a server of which nobody knows": &other, "one without a port": &portless} {
		if h.last.Engine != (event.Process{}) || h.last.CPU.V != 0.5 {
			t.Errorf("%s gets %+v", name, h.last)
		}
	}
	_, _ = server.Process.Kill(), server.Wait()
	sample(4e9)
	if p := one.last.Engine; p.CPU.OK() || p.RSS.OK() || m.searchedAt != 1e9 {
		t.Errorf("usage of an ended process: %+v", p)
	}
	sample(1e9 + searchInterval)
	if _, known := m.owners[9000]; known || m.searchedAt != 1e9+searchInterval {
		t.Errorf("the processes were not searched again: %v at %v", m.owners, m.searchedAt)
	}
}
