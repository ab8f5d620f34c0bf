package ui

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// For a server that never answered, the screen shows no downtime, no loading model and no last values.
func TestNeverReached(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 45}} {
		for _, v := range []viewID{viewOverview, viewRequests, viewRequest} {
			a := open(viewtest.Played("unreached"), theme.TrueColour, false, size[0], size[1])
			a.show(v)
			holds(t, a, "UNREACHABLE since llmtop started")
			holds(t, a, "no data yet: the server has not")
			a = open(viewtest.Played("unpolled"), theme.TrueColour, false, size[0], size[1])
			a.show(v)
			if got := a.screen(); strings.Contains(got, "REACHED") || strings.Contains(got, "refused") {
				t.Errorf("before the first poll the screen shows\n%s", got)
			}
		}
	}
	a := open(viewtest.Played("unreached"), theme.TrueColour, false, 160, 45)
	if got := a.screen(); strings.Contains(got, "model to load") || strings.Contains(got, "known before") {
		t.Errorf("the screen shows\n%s", got)
	}
}

// The key of a view of requests shows that per-request metrics are not reported.
func TestNoPerRequestMetrics(t *testing.T) {
	a := open(viewtest.Played("vllm"), theme.TrueColour, false, 100, 24)
	a.show(viewRequest)
	holds(t, a, "per-request metrics: not reported by this engine")
	holds(t, a, "measure them with llmtop proxy")
}

// Before an engine of this machine has started, one text says so in place of the boxes.
func TestWaitingForEngine(t *testing.T) {
	for at, hint := range map[string]bool{"my-engine": true, "unix:run.sock": false} {
		for _, size := range [][2]int{{80, 24}, {120, 36}} {
			s := viewtest.Played("unreached")
			s.Engine.Remote = event.Remote{Address: at, Link: event.LinkWaiting, Since: 1, Reason: "no event socket"}
			a := open(s, theme.TrueColour, false, size[0], size[1])
			for _, v := range []viewID{viewOverview, viewRequests, viewRequest} {
				a.show(v)
				holds(t, a, "WAITING for "+at)
				holds(t, a, "waiting for "+at)
				if got := a.screen(); strings.Contains(got, "HOST:PORT") != hint || strings.Contains(got, "UNREACHABLE") || strings.Contains(got, "┌") {
					t.Errorf("the screen shows\n%s", got)
				}
			}
		}
	}
}
