package session

import (
	"os"
	"os/exec"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
)

// hosts keeps the last sample of a machine, and how many there were.
type hosts struct {
	last *event.Host
	n    int
}

func (h *hosts) Emit(e event.Event) { h.last, _ = e.Data.(*event.Host); h.n++ }

// process starts a process to be that of an engine.
func process(t *testing.T) (pid int, end func()) {
	t.Helper()
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Skipf("no sleep to be the process of an engine: %v", err)
	}
	end = func() { _, _ = c.Process.Kill(), c.Wait() }
	t.Cleanup(end)
	return c.Process.Pid, end
}

// sample passes a sample of the machine at a time.
func (m *Machine) sampleAt(at event.Time) {
	m.Emit(event.Event{Kind: event.KindHost, At: at, Data: &event.Host{
		Interval: 1e9, CPU: event.MeasuredValue(0.5), Engine: event.Process{PID: 1, RSS: event.MeasuredValue(1)}, Self: event.Process{PID: 2},
	}})
}

// TestMachineOfServers checks that each engine on this machine gets the usage of its own process, none if the process is
// unknown, and that all get the rest; the process of a server is searched again after it ended, and a stranger with its
// number is not taken for it.
func TestMachineOfServers(t *testing.T) {
	server, end := process(t)
	m := &Machine{owners: map[uint16]host.ID{8000: host.Identify(server), 9000: host.Identify(os.Getpid())}, searchedAt: 1e9}
	t.Cleanup(m.Close)
	var one, same, other, portless, known, elsewhere hosts
	pid := 0
	for at, h := range map[string]*hosts{
		"http://127.0.0.1:8000": &one, "http://localhost:8000/v1": &same, "http://127.0.0.1:8001": &other, "https://localhost": &portless,
		"http://gpu1.example:8000": &elsewhere,
	} {
		m.Add(engine.NewClock(), m.At(at), h)
	}
	late := m.Add(engine.NewClock(), Known(func() int { return pid }), &known)
	m.sampleAt(2e9)
	m.sampleAt(3e9)
	if list := late.Processes(); known.last != nil || list != nil || late.Here() {
		t.Errorf("a process that is not known yet gets %+v, and the threads of %v", known.last, list)
	}
	pid = server
	m.sampleAt(3.5e9)
	if known.last == nil || known.last.Engine.PID != pid || len(late.Processes()) == 0 || !late.Here() {
		t.Errorf("a known process gets %+v", known.last)
	}
	for name, h := range map[string]*hosts{"the server": &one, "the same by another name": &same} {
		if p := h.last.Engine; p.PID != server || !p.CPU.OK() || p.RSS.V <= 0 || h.last.CPU.V != 0.5 {
			t.Errorf("%s gets %+v", name, h.last)
		}
	}
	for name, h := range map[string]*hosts{"a server of which nobody knows": &other, "one without a port": &portless} {
		if h.last.Engine != (event.Process{}) || h.last.CPU.V != 0.5 {
			t.Errorf("%s gets %+v", name, h.last)
		}
	}
	if h := elsewhere.last; h.CPU.OK() || h.Engine != (event.Process{}) || h.Self.PID != 2 || h.NoGPU == "" {
		t.Errorf("a server on another machine gets %+v", h)
	}
	m.owners[8001] = host.ID{PID: server, Started: m.owners[8000].Started + 1}
	if m.sampleAt(4e9); other.last.Engine != (event.Process{}) {
		t.Errorf("a process with the number of another: %+v", other.last.Engine)
	}
	end()
	if m.sampleAt(5e9); one.last.Engine != (event.Process{}) || m.searchedAt != 1e9 {
		t.Errorf("usage of an ended process: %+v", one.last.Engine)
	}
	m.sampleAt(1e9 + searchInterval)
	if _, known := m.owners[9000]; known || m.searchedAt != 1e9+searchInterval {
		t.Errorf("the processes were not searched again: %v at %v", m.owners, m.searchedAt)
	}
}

// TestMachineOfSamplers checks that what an engine says of its machine is completed with what llmtop reads of its process,
// that no time counts twice, and that its threads are sampled unless it does so itself.
func TestMachineOfSamplers(t *testing.T) {
	pid, _ := process(t)
	m := new(Machine)
	t.Cleanup(m.Close)
	var got hosts
	clock := engine.NewClock()
	h := m.Add(clock, Known(func() int { return pid }), &got)
	from := h.Engine(&got)
	emit := func(kind event.Kind, at event.Time, data any) {
		from.Emit(event.Event{Kind: kind, At: at, Layer: -1, Data: data})
	}
	m.sampleAt(2e9)
	m.sampleAt(3e9)
	if got.n != 2 || len(h.Processes()) == 0 {
		t.Fatalf("an engine that says nothing gets %d samples, and the threads of %v", got.n, h.Processes())
	}
	power := &event.Host{Interval: 1e9, Power: event.ReportedValue(40), CPU: event.ReportedValue(0.1), ModelBytes: event.MeasuredValue(7), Self: event.Process{PID: 9}}
	emit(event.KindHost, 3.4e9, power)
	if s := got.last; got.n != 3 || s.Power.V != 40 || s.CPU != event.ReportedValue(0.1) || s.Engine.PID != pid || !s.Engine.RSS.OK() || s.Self.PID != 2 || s.Interval != 0.4e9 {
		t.Errorf("its own sample becomes %+v", s)
	}
	if power.Self.PID != 9 || power.Engine.PID != 0 {
		t.Errorf("the event, which others share, was changed: %+v", power)
	}
	if m.sampleAt(4e9); got.n != 3 {
		t.Error("the second of its own sample is passed on again")
	}
	m.sampleAt(5e9)
	if s := got.last; got.n != 4 || s.CPU.V != 0.5 || s.Power.V != 40 || s.ModelBytes.OK() || s.Interval != 1e9 {
		t.Errorf("the second after it becomes %+v", s)
	}
	if m.sampleAt(20e9); got.last.Power.OK() {
		t.Error("its number of long ago counts")
	}
	emit(event.KindEngine, 20e9, &event.EngineInfo{Caps: event.CapHost})
	if list := h.Processes(); list != nil {
		t.Errorf("the threads of %v, which an engine that samples its machine may sample itself", list)
	}
	h.busy = clock.Now() - usageWait // its first request began
	if len(h.Processes()) == 0 {
		t.Error("no threads of an engine that samples only its machine")
	}
	emit(event.KindUsage, 21e9, new(event.Usage))
	if list := h.Processes(); list != nil {
		t.Errorf("the threads of %v, which it samples itself", list)
	}
	emit(event.KindEngine, 22e9, &event.EngineInfo{Remote: event.Remote{Link: event.LinkDisconnected}})
	if len(h.Processes()) == 0 {
		t.Error("no threads of the next run of the engine")
	}
}
