package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func TestGoldenReported(t *testing.T) {
	for name, s := range map[string]*store.Snapshot{"counted": viewtest.AggregateOnly(), "slots": viewtest.Slotted(), "bare": viewtest.Bare(), "probed": viewtest.Probed(), "loads": viewtest.SeveralModels(), "traces": viewtest.Traced(), "started": viewtest.Started(), "untimed": viewtest.Untimed()} {
		for _, size := range [][2]int{{80, 24}, {160, 45}} {
			for _, v := range []viewID{viewOverview, viewLatency, viewEngines, viewRequests} {
				a := open(s, theme.TrueColour, false, size[0], size[1])
				a.show(v)
				file := fmt.Sprintf("reported_%s_%s_%dx%d.txt", name, strings.ToLower(viewName(v)), size[0], size[1])
				viewtest.Golden(t, file, strings.TrimSuffix(a.screen(), "\n"))
			}
		}
	}
}

// For a server that never answered, the screen shows no downtime, no loading model and no last values.
func TestNeverReached(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 45}} {
		for _, v := range []viewID{viewOverview, viewRequests, viewRequest} {
			a := open(viewtest.Unreached(true), theme.TrueColour, false, size[0], size[1])
			a.show(v)
			holds(t, a, "UNREACHABLE since llmtop started")
			holds(t, a, "no data yet: the server has not")
			a = open(viewtest.Unreached(false), theme.TrueColour, false, size[0], size[1])
			a.show(v)
			if got := a.screen(); strings.Contains(got, "REACHED") || strings.Contains(got, "refused") {
				t.Errorf("before the first poll the screen shows\n%s", got)
			}
		}
	}
	a := open(viewtest.Unreached(true), theme.TrueColour, false, 160, 45)
	viewtest.Golden(t, "reported_unreached_overview_160x45.txt", strings.TrimSuffix(a.screen(), "\n"))
	if got := a.screen(); strings.Contains(got, "model to load") || strings.Contains(got, "known before") {
		t.Errorf("the screen shows\n%s", got)
	}
}

// The view of one request also shows that per-request metrics are not reported.
func TestNoPerRequestMetrics(t *testing.T) {
	a := open(viewtest.AggregateOnly(), theme.TrueColour, false, 80, 24)
	a.show(viewRequest)
	holds(t, a, "per-request metrics: not reported by this engine")
	holds(t, a, "measure them with llmtop proxy")
}
