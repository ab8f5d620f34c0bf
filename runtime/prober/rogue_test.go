package prober

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/peer/rogue"
)

// TestRogues: however a server answers a probe, that is told as a probe that failed or was given up, with a reason, and the next one goes on its way when it
// has ended.
func TestRogues(t *testing.T) {
	good := "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n"
	for _, way := range rogue.Ways(t, "text/event-stream", good) {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.rogue.Store(http.HandlerFunc(way.Answer))
			p, log := begin(t, s, func(p *Source) {
				if way.Endless {
					p.last = 200 * time.Millisecond
				}
			})
			p.Beside(event.Discard{}).Emit(connected)
			ended := func(states ...event.State) (n int) {
				for _, e := range log.Of(event.KindRequest) {
					if slices.Contains(states, e.State) {
						n++
					}
				}
				return n
			}
			eventtest.Wait(t, "a probe that fails", func() bool { return ended(event.StateFailed, event.StateCancelled) >= 1 })
			s.rogue.Store(http.HandlerFunc(nil))
			eventtest.Wait(t, "one that does not", func() bool { return ended(event.StateFinished) >= 1 })
			said := log.Of(event.KindLog)
			if len(said) == 0 || s.most.Load() != 1 || !strings.HasPrefix(said[0].Text, "probe: ") {
				t.Errorf("said %v; %d probes at the same time", said, s.most.Load())
			}
		})
	}
}
