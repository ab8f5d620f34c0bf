package scrape

import (
	"net/http"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/peer/rogue"
)

// TestRogues: a server that begins to misbehave, in whatever way, is told as disconnected, with a reason, and watched again once it behaves. Neither is it
// taken for another one nor does anything count twice.
func TestRogues(t *testing.T) {
	for _, way := range rogue.Ways(t, "text/plain; version=0.0.4", vllmPages("m", 100)["/metrics"]) {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, vllmPages("m", 100))
			w := watchIt(t, Options{Address: f.URL})
			_, n := w.linked(event.LinkConnected, "", 0)
			until(w, event.KindReport, 0, func(*event.Report) bool { return true })
			f.answer(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					way.Answer(w, r)
					return
				}
				f.page(w, r)
			})
			e, n := until(w, event.KindEngine, n, func(e *event.Engine) bool { return e.Remote.Link == event.LinkDisconnected })
			if e.Remote.Why == "" || e.Name != "vLLM" {
				t.Errorf("it is said to be %+v", e)
			}
			f.answer(nil)
			e, _ = w.linked(event.LinkConnected, "", n)
			from := len(w.log.Of(event.KindReport))
			f.set("/metrics", vllmPages("m", 107)["/metrics"])
			until(w, event.KindReport, from, func(p *event.Report) bool { return p.Generated.V == 7 })
			if e.Name != "vLLM" || e.Remote.Restarts != 0 {
				t.Errorf("it is said to be %+v", e)
			}
		})
	}
}
