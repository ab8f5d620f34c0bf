package fleet

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/peer/rogue"
)

// TestRogues: whatever a Prometheus answers, that is told with a reason, and the replicas as stale; then it goes on.
func TestRogues(t *testing.T) {
	for _, way := range rogue.Ways(t, "application/json", vector(`{"metric":{"__name__":"up","instance":"gpu1:8000","job":"llm"},"value":[1700000000,"1"]}`)) {
		if way.Name == "says a length that is too long" {
			continue // the answer is whole, and nothing behind it is waited for
		}
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			w := watch(t, Options{Address: f.URL, within: 2 * time.Second})
			r := w.replica("gpu1:8000")
			r.until(event.KindReport, func(any) bool { return true })
			f.change(func() { f.hook = way.Answer })
			r.untilLast(event.LinkStale)
			f.change(func() { f.hook = nil })
			r.untilLast(event.LinkConnected)
			why := ""
			for _, e := range w.self.Of(event.KindEngine) {
				if remote := e.Data.(*event.Engine).Remote; remote.Link == event.LinkDisconnected && remote.Why != "not asked yet" {
					why = remote.Why
				}
			}
			if why == "" {
				t.Error("nobody says why")
			}
		})
	}
}
