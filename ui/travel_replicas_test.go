package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/store"
)

// forgotten is a past of which nothing is kept.
type forgotten struct{ *store.Trip }

func (forgotten) At(event.Time) *store.Snapshot { return nil }

// fleetOver are replicas that have been watched for a minute: in each second as many requests run at each as seconds have passed. The 3rd is down from
// second 40 on, and of the 5th nothing is kept.
func fleetOver(n int) (all []Session, now *event.Time) {
	now = new(event.Time)
	*now = event.Time(time.Second)
	share := store.NewShare(48<<20, store.BesideHistory)
	for i := range n {
		s := store.New(store.Options{Now: func() event.Time { return *now }, Wall: func() time.Time { return time.Unix(0, int64(*now)) }, Queue: 256, Share: share})
		past := func() Past { return s.Travel() }
		if i == 4 {
			past = func() Past { return forgotten{s.Travel()} }
		}
		all = append(all, Session{Name: fmt.Sprintf("vllm-%03d", i), Snapshots: s.Snapshot, Past: past})
		at := event.Time(0)
		tell := func(kind event.Kind, data any) {
			s.Emit(event.Event{Kind: kind, At: at, Layer: -1, Data: data})
		}
		link := func(l event.Link) {
			tell(event.KindEngine, &event.Engine{Name: "vLLM", Caps: event.CapReports, State: event.EngineReady, Remote: event.Remote{Address: "x", Link: l, Since: at}})
		}
		link(event.LinkConnected)
		for second := range 60 {
			at = event.Time(second+1) * event.Time(time.Second)
			*now = at
			if i == 2 && second >= 40 {
				link(event.LinkDisconnected)
				s.Drain()
				break
			}
			tell(event.KindReport, &event.Report{Interval: int64(time.Second), Running: reading(float64(second + 1))})
			s.Drain()
		}
	}
	*now = event.Time(60 * time.Second)
	return all, now
}

// While the view is paused the table of a fleet is as it was then: all of it, though not all at once.
func TestAFleetTravelsInTime(t *testing.T) {
	all, _ := fleetOver(100)
	a := openFleet(&all, false, 160, 45)
	a.Update(tickMsg{})
	holds(t, a, "1 DISCONNECTED")
	running := func() (out string) {
		t.Helper()
		for line := range strings.Lines(a.screen()) {
			if strings.Contains(line, "vllm-000") {
				out = line
			}
		}
		return out
	}
	if !strings.Contains(running(), " 60 ") {
		t.Errorf("live the first replica is %s", running())
	}
	a.press("space", "[", "[", "[")
	if a.panes.Behind != 100-looksAtOnce {
		t.Errorf("%d are not looked at yet, want %d", a.panes.Behind, 100-looksAtOnce)
	}
	holds(t, a, fmt.Sprintf("looking back: %d of 100", looksAtOnce))
	for range 100/looksAtOnce + 1 {
		a.Update(tickMsg{})
	}
	if a.panes.Behind != 0 {
		t.Errorf("%d have still not been looked at", a.panes.Behind)
	}
	if !strings.Contains(running(), " 30 ") {
		t.Errorf("30 s before it was %s", running())
	}
	for _, r := range a.replicas.all {
		if got := r.Cells[fleet.Running].V; r.Name != "vllm-004" && got != 30 {
			t.Errorf("at %s %v requests ran, want 30", r.Name, got)
		}
	}
	if strings.Contains(a.screen(), "DISCONNECTED") {
		t.Error("then none was down")
	}
	holds(t, a, "1 not kept")
	a.press("]", "]") // 10 s ago the third was down
	for range 100/looksAtOnce + 1 {
		a.Update(tickMsg{})
	}
	holds(t, a, "1 DISCONNECTED")
	a.press("enter")
	holds(t, a, "1/100 vllm-000")
	a.press(")", ")", ")", ")")
	holds(t, a, "not kept")
	a.press("space")
	a.Update(tickMsg{})
	holds(t, a, "5/100 vllm-004")
	b := openFleet(&all, false, 160, 45)
	b.press("1", "space", "[", "7") // the table is opened for the first time
	holds(t, b, fmt.Sprintf("looking back: %d of 100", looksAtOnce))
}
