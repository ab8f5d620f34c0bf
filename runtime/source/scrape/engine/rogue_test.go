package engine

import (
	"net/http"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestMisbehavingServers: a server that misbehaves in any way is disconnected with a reason, and polled again once it
// behaves. It is not identified as another engine, and nothing counts twice.
func TestMisbehavingServers(t *testing.T) {
	for _, way := range peer.Ways(t, "text/plain; version=0.0.4", vllmPages("m", 100)["/metrics"]) {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, vllmPages("m", 100))
			w := startPoller(t, Options{Address: f.URL})
			_, n := w.waitForLink(event.LinkConnected, "", 0)
			waitFor(w, event.KindAggregates, 0, func(*event.Aggregates) bool { return true })
			f.setHandler(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					way.Answer(w, r)
					return
				}
				f.servePage(w, r)
			})
			e, n := waitFor(w, event.KindEngine, n, func(e *event.EngineInfo) bool { return e.Remote.Link == event.LinkDisconnected })
			if e.Remote.Reason == "" || e.Name != "vLLM" {
				t.Errorf("engine %+v", e)
			}
			f.setHandler(nil)
			e, _ = w.waitForLink(event.LinkConnected, "", n)
			from := len(w.log.OfKind(event.KindAggregates))
			f.setPage("/metrics", vllmPages("m", 107)["/metrics"])
			waitFor(w, event.KindAggregates, from, func(p *event.Aggregates) bool { return p.Generated.V == 7 })
			if e.Name != "vLLM" || e.Remote.Restarts != 0 {
				t.Errorf("engine %+v", e)
			}
		})
	}
}
