//go:build unix

package program_test

import (
	"context"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// TestNoLeaks polls servers in every state of health: connections and goroutines per server are bounded, and none
// remains at the end.
func TestNoLeaks(t *testing.T) {
	const servers, each = 60, 10 // goroutines per server: the poller, two per connection on each side, and twice as many while one connection replaces another
	farm := newFarm(t, servers)
	for i, s := range farm.Servers {
		s.Set(t, Manner(i%6))
	}
	current, before := goleak.IgnoreCurrent(), goruntime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	clock := engine.NewClock()
	var running sync.WaitGroup
	for _, at := range farm.URLs() {
		s, err := scrape.New(scrape.Options{Address: at, Clock: clock, Interval: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = s.Run(ctx, event.Tee{}) }) // it never fails
	}
	most := 0
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
			most = max(most, goruntime.NumGoroutine()-before)
			if time.Now().After(end) {
				t.Fatalf("timed out waiting until %s", what)
			}
		}
	}
	eventually("healthy servers were polled 20 times and the others twice", func() bool {
		for i, s := range farm.Servers {
			switch Manner(i % 6) {
			case Refuses:
			case Well:
				if s.Answered() < 20 {
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
	eventually("all connections are closed", func() bool { return farm.Open() == 0 })
	eventually("all goroutines have ended", func() bool { return goleak.Find(current) == nil })
	if most > each*servers {
		t.Errorf("%d additional goroutines", most)
	}
	for _, s := range farm.Servers {
		if conns, requests := s.Most(); conns > 2 || requests > 1 {
			t.Errorf("%s had %d connections and %d requests at the same time", s.URL, conns, requests)
		}
	}
}
