package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// emptyHistory is a history without snapshots.
type emptyHistory struct{ *store.Past }

func (emptyHistory) At(event.Time) *store.Snapshot { return nil }

// fleetOver returns replicas watched for a minute: second by second, each has one more running request. The 3rd is down
// from second 40, and the 5th has no history.
func fleetOver(n int) (all []Session, now *event.Time) {
	now = new(event.Time)
	*now = event.Time(time.Second)
	share := store.NewPastBudget(48 << 20)
	for i := range n {
		s := store.New(store.Options{Now: func() event.Time { return *now }, Wall: func() time.Time { return time.Unix(0, int64(*now)) }, Queue: 256, Past: share})
		past := Past(s.Past())
		if i == 4 {
			past = emptyHistory{s.Past()}
		}
		all = append(all, Session{Name: fmt.Sprintf("vllm-%03d", i), Snapshots: s.Snapshot, Past: past})
		at := event.Time(0)
		emit := func(kind event.Kind, data any) {
			s.Emit(event.Event{Kind: kind, At: at, Layer: -1, Data: data})
		}
		link := func(l event.Link) {
			emit(event.KindEngine, &event.EngineInfo{Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady, Remote: event.Remote{Address: "x", Link: l, Since: at}})
		}
		link(event.LinkConnected)
		for second := range 60 {
			at = event.Time(second+1)*event.Time(time.Second) - 1
			*now = at
			if i == 2 && second >= 40 {
				link(event.LinkDisconnected)
				s.Drain()
				break
			}
			emit(event.KindAggregates, &event.Aggregates{Interval: int64(time.Second), Running: viewtest.Reading(float64(second + 1))})
			s.Drain()
		}
	}
	*now = event.Time(60 * time.Second)
	return all, now
}

// A paused view shows the whole table of a fleet at that moment.
func TestHistoryOfAFleet(t *testing.T) {
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
		t.Errorf("live, the row of the first replica is %s", running())
	}
	a.press("space", "[", "[", "[")
	if !strings.Contains(running(), " 30 ") {
		t.Errorf("30 s ago, the row of the first replica was %s", running())
	}
	for _, r := range a.engines.Fleet.List.Rows {
		if got := r.Cells[fleet.Running].V; r.Name != "vllm-004" && got != 30 {
			t.Errorf("%s had %v running requests, want 30", r.Name, got)
		}
	}
	if strings.Contains(a.screen(), "DISCONNECTED") {
		t.Error("at that moment no replica was down")
	}
	holds(t, a, "1 not kept")
	a.press("]", "]") // 10 s ago the third replica was down
	holds(t, a, "1 DISCONNECTED")
	a.press("enter")
	holds(t, a, "1/100 vllm-000")
	a.press(")", ")", ")", ")")
	holds(t, a, "not kept")
	a.press("space")
	a.Update(tickMsg{})
	holds(t, a, "5/100 vllm-004")
}
