package prober

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestMisbehavingServers: for any bad response, the probe fails with a reason, and the next one starts after it has
// ended.
func TestMisbehavingServers(t *testing.T) {
	good := "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n"
	for _, way := range peer.Ways(t, "text/event-stream", good) {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.rogue.Store(http.HandlerFunc(way.Answer))
			p, log := startWith(t, s, func(p *Prober) {
				if way.Endless {
					p.timeout = 200 * time.Millisecond
				}
			})
			p.Observe(event.Tee{}).Emit(connected)
			ended := func(states ...event.State) (n int) {
				for _, e := range log.OfKind(event.KindRequest) {
					if slices.Contains(states, e.State) {
						n++
					}
				}
				return n
			}
			eventtest.Wait(t, "a probe that fails", func() bool { return ended(event.StateFailed, event.StateCancelled) >= 1 })
			s.rogue.Store(http.HandlerFunc(nil))
			eventtest.Wait(t, "one that does not", func() bool { return ended(event.StateFinished) >= 1 })
			logs := log.OfKind(event.KindLog)
			if len(logs) == 0 || s.most.Load() != 1 || !strings.HasPrefix(logs[0].Text, "probe: ") {
				t.Errorf("logs %v; %d probes at the same time", logs, s.most.Load())
			}
		})
	}
}
