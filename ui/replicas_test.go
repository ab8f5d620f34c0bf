package ui

import (
	"fmt"
	"testing"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// selectedReplica returns the name of the selected row.
func selectedReplica(a *app) string {
	return a.engines.Fleet.List.Rows[a.engines.Fleet.Selected].Name
}

func TestReplicasAreSortedFilteredAndOpened(t *testing.T) {
	all := sessionsOf(viewtest.Replicas(9))
	a := openFleet(&all, false, 160, 45)
	holds(t, a, "9 replicas, by replica")
	holds(t, a, "10.0.0.8:8000: waiting 14.0× the median")
	holds(t, a, "TTFT mean 3.0× the median")
	a.press("down", "down", "<", "<", "<", "<", "<", "<") // age, hits, ITL, TPOT, p99, TTFT p50
	holds(t, a, "by TTFT p50")
	if got := selectedReplica(a); got != "10.0.0.8:8000" {
		t.Errorf("the slowest is %s", got)
	}
	a.press("r")
	if got := selectedReplica(a); got == "10.0.0.8:8000" {
		t.Error("r does not reverse the order")
	}
	a.press("/")
	for _, k := range "waiting>4" {
		a.press(string(k))
	}
	a.press("enter")
	holds(t, a, "1 of 9 replicas")
	a.press("enter")
	if a.view != viewOverview || a.session.Name != "10.0.0.8:8000" {
		t.Fatalf("enter shows %q in view %v", a.session.Name, a.view)
	}
	a.press("esc")
	if a.view != viewEngines {
		t.Fatal("esc does not go back to the table")
	}
	a.press("esc")
	holds(t, a, "9 replicas, by TTFT p50")
	a.press("/", "x", "y", "=", "esc")
	holds(t, a, "9 replicas, by TTFT p50")
}

// An invalid filter shows its error while the user types and leaves the rows unchanged.
func TestReplicaFilterShowsItsError(t *testing.T) {
	all := sessionsOf(viewtest.Replicas(9))
	a := openFleet(&all, false, 160, 45)
	a.press("/")
	for _, k := range "speed>4" {
		a.press(string(k))
	}
	holds(t, a, `unknown column "speed"`)
	holds(t, a, "9 replicas")
}

func BenchmarkReplicas500(b *testing.B) {
	all := sessionsOf(viewtest.Replicas(500))
	for _, size := range [][2]int{{160, 45}, {200, 60}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			a := openFleet(&all, false, size[0], size[1])
			next := make([]*store.Snapshot, len(all))
			for i := range all {
				next[i] = all[i].Snapshots()
			}
			b.ReportAllocs()
			for b.Loop() {
				for i := range next { // each replica has new data
					s := *next[i]
					next[i] = &s
					all[i].Snapshots = func() *store.Snapshot { return &s }
				}
				a.onTick()
				a.draw()
			}
		})
	}
}

// Prometheus is one engine until its replicas are found; then the replicas are listed.
func TestReplicasReplacePrometheus(t *testing.T) {
	s := viewtest.Played("bare")
	all := []Session{{Name: "prometheus", Snapshots: func() *store.Snapshot { return s }}}
	a := openFleet(&all, false, 120, 36)
	if a.view != viewOverview {
		t.Fatal("a single engine is not shown at once")
	}
	all = sessionsOf(viewtest.Replicas(9))
	a.onTick()
	if a.view != viewEngines {
		t.Error("the replicas are not listed when they come")
	}
	holds(t, a, "9 replicas")
}

// The first selected row is the engine on the screen, even if it is not the first row.
func TestEngineOnTheScreenIsSelected(t *testing.T) {
	all := sessionsOf(viewtest.Replicas(4))
	all[0].Name, all[2].Name = all[2].Name, all[0].Name
	a := openFleet(&all, false, 160, 45)
	if got := selectedReplica(a); got != a.session.Name || got != all[0].Name {
		t.Errorf("%s is selected, and %s on the screen", got, a.session.Name)
	}
	a.switchEngine(true)
	if got := selectedReplica(a); got != a.session.Name || got != all[1].Name {
		t.Errorf("after the next engine %s is selected, and %s on the screen", got, a.session.Name)
	}
}
