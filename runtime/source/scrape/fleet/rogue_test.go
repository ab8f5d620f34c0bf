package fleet

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestMisbehavingPrometheus: any bad response is reported with a reason, replicas become stale, and polling continues.
func TestMisbehavingPrometheus(t *testing.T) {
	for _, way := range peer.Ways(t, "application/json", vector(`{"metric":{"__name__":"up","instance":"gpu1:8000","job":"llm"},"value":[1700000000,"1"]}`)) {
		if way.Name == "Content-Length too large" {
			continue // the response is complete: nothing waits for more
		}
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			w := startPoller(t, Options{Address: f.URL, timeout: 2 * time.Second})
			r := w.waitForReplica("gpu1:8000")
			r.waitFor(event.KindAggregates, func(any) bool { return true })
			f.change(func() { f.handler = way.Answer })
			r.waitForLastLink(event.LinkStale)
			f.change(func() { f.handler = nil })
			r.waitForLastLink(event.LinkConnected)
			why := ""
			for _, e := range w.self.OfKind(event.KindEngine) {
				info := e.Data.(*event.EngineInfo)
				if (info.Remote.Link == event.LinkConnected || why != "") && info.State != event.EngineReady {
					t.Errorf("%v when it is %v", info.State, info.Remote.Link) // it has been reached
				}
				if info.Remote.Link == event.LinkDisconnected && info.Remote.Reason != "not polled yet" {
					why = info.Remote.Reason
				}
			}
			if why == "" {
				t.Error("no reason")
			}
		})
	}
}
