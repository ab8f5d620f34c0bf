//go:build unix

package scrape

import (
	"context"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/peer"
)

// TestNothingPilesUp: servers in every state of health are watched with a bounded number of connections and goroutines each, of which none is left at the end.
func TestNothingPilesUp(t *testing.T) {
	const servers, each = 60, 10 // goroutines: the source's, two of a connection here and two there, and twice as many while one takes another's place
	farm := peer.NewFarm(t, sampleOf(t, "../gather/testdata/vllm.txt"), servers)
	for i, s := range farm.Servers {
		s.Set(t, peer.Manner(i%6))
	}
	current, before := goleak.IgnoreCurrent(), goruntime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	lanes, clock := NewLanes(), runtime.NewClock()
	var running sync.WaitGroup
	for _, at := range farm.URLs() {
		s, err := New(Options{Address: at, Clock: clock, Lanes: lanes, Interval: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = s.Run(ctx, event.Discard{}) }) // it has no error
	}
	most := 0
	holds := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
			most = max(most, goruntime.NumGoroutine()-before)
			if time.Now().After(end) {
				t.Fatalf("it never came about that %s", what)
			}
		}
	}
	holds("those that are well have told often, and the others were asked twice", func() bool {
		for i, s := range farm.Servers {
			switch peer.Manner(i % 6) {
			case peer.Refuses:
			case peer.Well:
				if s.Told() < 20 {
					return false
				}
			default:
				if s.Asked() < 2 {
					return false
				}
			}
		}
		return true
	})
	stop()
	running.Wait()
	holds("all connections are closed", func() bool { return farm.Open() == 0 })
	holds("all goroutines have ended", func() bool { return goleak.Find(current) == nil })
	if most > each*servers {
		t.Errorf("there were %d goroutines more than before", most)
	}
	for _, s := range farm.Servers {
		if conns, questions := s.Most(); conns > 2 || questions > 1 {
			t.Errorf("%s had %d connections and %d questions at a time", s.URL, conns, questions)
		}
	}
}
