package fleet

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// patience is the longest wait for an expected event.
const patience = 20 * time.Second

// runningPoller is a Poller that runs until the test ends, and its events.
type runningPoller struct {
	t        *testing.T
	self     eventtest.Log // of Prometheus
	mu       sync.Mutex
	replicas map[string]*replicaLog
}

// replicaLog holds the events of a replica.
type replicaLog struct {
	t    *testing.T
	name string
	eventtest.Log
}

func startPoller(t *testing.T, opt Options) *runningPoller {
	t.Helper()
	w := &runningPoller{t: t, replicas: make(map[string]*replicaLog)}
	opt.Clock = engine.NewClock()
	if opt.Interval == 0 {
		opt.Interval = 20 * time.Millisecond
	}
	opt.OnReplica = func(name string) event.Sink {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.replicas[name] != nil {
			t.Errorf("OnReplica was called twice for %s", name)
		}
		w.replicas[name] = &replicaLog{t: t, name: name}
		return w.replicas[name]
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	eventtest.Run(t, s, &w.self)
	return w
}

// waitForReplica waits until a replica is shown.
func (w *runningPoller) waitForReplica(name string) *replicaLog {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		w.mu.Lock()
		r := w.replicas[name]
		w.mu.Unlock()
		if r != nil {
			return r
		}
	}
	all := w.self.OfKind(event.KindEngine)
	w.t.Fatalf("no replica %s; Prometheus: %+v", name, all[len(all)-1].Data)
	return nil
}

// waitFor waits for an event of a kind that ok accepts.
func (s *replicaLog) waitFor(k event.Kind, ok func(any) bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, e := range s.OfKind(k) {
			if ok(e.Data) {
				return
			}
		}
	}
	s.t.Fatalf("%s: %d %v events, none as expected", s.name, len(s.OfKind(k)), k)
}

// waitForLinkAfter waits for a connection state that follows another one.
func (s *replicaLog) waitForLinkAfter(k event.Kind, first, then event.Link) {
	s.t.Helper()
	was := false
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		was = false
		for _, e := range s.OfKind(k) {
			link := e.Data.(*event.EngineInfo).Remote.Link
			if was && link == then {
				return
			}
			was = was || link == first
		}
	}
	s.t.Fatalf("%s was not %v after it was %v", s.name, then, first)
}

// waitForReason waits until Prometheus is reported with a reason.
func (w *runningPoller) waitForReason(why string) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, e := range w.self.OfKind(event.KindEngine) {
			if strings.Contains(e.Data.(*event.EngineInfo).Remote.Reason, why) {
				return
			}
		}
	}
	w.t.Fatalf("Prometheus is not reported with reason %q", why)
}

// waitForLastLink waits until the last reported connection state is link.
func (s *replicaLog) waitForLastLink(link event.Link) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if all := s.OfKind(event.KindEngine); len(all) > 0 && all[len(all)-1].Data.(*event.EngineInfo).Remote.Link == link {
			return
		}
	}
	s.t.Fatalf("%s is not %v", s.name, link)
}
