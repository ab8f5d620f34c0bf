package fleet

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime"
)

// patience is how long something may take that must come.
const patience = 20 * time.Second

// watched is a fleet that is watched until the test ends.
type watched struct {
	t    *testing.T
	self eventtest.Log // of Prometheus
	mu   sync.Mutex
	all  map[string]*seen
}

// seen is what came of one replica.
type seen struct {
	t    *testing.T
	name string
	eventtest.Log
}

func watch(t *testing.T, opt Options) *watched {
	t.Helper()
	w := &watched{t: t, all: make(map[string]*seen)}
	opt.Clock = runtime.NewClock()
	if opt.Interval == 0 {
		opt.Interval = 20 * time.Millisecond
	}
	opt.Meet = func(name string) event.Sink {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.all[name] != nil {
			t.Errorf("%s is met twice", name)
		}
		w.all[name] = &seen{t: t, name: name}
		return w.all[name]
	}
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	eventtest.Run(t, s, &w.self)
	return w
}

// replica waits for a replica.
func (w *watched) replica(name string) *seen {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		w.mu.Lock()
		r := w.all[name]
		w.mu.Unlock()
		if r != nil {
			return r
		}
	}
	all := w.self.Of(event.KindEngine)
	w.t.Fatalf("there is no replica %s; of Prometheus it is said %+v", name, all[len(all)-1].Data)
	return nil
}

// until waits for an event of a kind.
func (s *seen) until(k event.Kind, ok func(any) bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, e := range s.Of(k) {
			if ok(e.Data) {
				return
			}
		}
	}
	s.t.Fatalf("of %s there came %d of %v, and none that was waited for", s.name, len(s.Of(k)), k)
}

// untilAfter waits for a state of the connection after another one.
func (s *seen) untilAfter(k event.Kind, first, then event.Link) {
	s.t.Helper()
	was := false
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		was = false
		for _, e := range s.Of(k) {
			link := e.Data.(*event.Engine).Remote.Link
			if was && link == then {
				return
			}
			was = was || link == first
		}
	}
	s.t.Fatalf("%s was not %v after it was %v", s.name, then, first)
}

// says waits until Prometheus is said to have gone wrong for a reason.
func (w *watched) says(why string) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		for _, e := range w.self.Of(event.KindEngine) {
			if strings.Contains(e.Data.(*event.Engine).Remote.Why, why) {
				return
			}
		}
	}
	w.t.Fatalf("nobody says %q of Prometheus", why)
}

// untilLast waits until the connection is in a state.
func (s *seen) untilLast(link event.Link) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if all := s.Of(event.KindEngine); len(all) > 0 && all[len(all)-1].Data.(*event.Engine).Remote.Link == link {
			return
		}
	}
	s.t.Fatalf("%s is not %v", s.name, link)
}
