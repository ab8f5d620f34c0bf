package request

import (
	"reflect"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// A request that waited before the model load, too, shows that part of its queue time before the load: no row covers
// another, and nothing of it is "other".
func TestQueueAroundTheLoad(t *testing.T) {
	const ms = event.Time(1e6)
	span := func(st event.Stage, from, to event.Time) store.StageSpan {
		return store.StageSpan{Stage: st, Start: from * ms, End: to * ms}
	}
	r := &store.Request{
		Enqueued: 10 * ms, First: 30 * ms, Closed: 40 * ms, Cold: true,
		TTFT:  event.DerivedValue(0.020),
		Spans: []store.StageSpan{span(event.StageLoad, 12, 24), span(event.StageQueue, 22, 25), span(event.StagePrompt, 25, 30)},
		Parts: []store.Part{{Stage: event.StageLoad, Dur: 12e6}, {Stage: event.StageQueue, Dur: 3e6}, {Stage: event.StagePrompt, Dur: 5e6}, {}},
	}
	s := &store.Snapshot{}
	c := &pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)}
	got := map[string][][2]float64{}
	for _, row := range waterfallRows(s, c, r, requestAxis(s, r, false)) {
		got[row.name] = row.at
	}
	want := map[string][][2]float64{
		"load": {{0.1, 0.7}}, "queue": {{0, 0.1}, {0.7, 0.75}}, "prompt": {{0.75, 1}}, "other": nil,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

// The cause of a late token tells one that was no stall from one that was not judged, and from one whose cause is not kept.
func TestCauseOfLateTokens(t *testing.T) {
	c := &pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)}
	for want, r := range map[string]*store.Request{
		"a stall; the cause is kept of the 1 longest only": {Late: []int32{3, 9}, Stalls: []store.Stall{{Index: 9}}, ITL: metric.Summary{Count: 100}},
		"late, but not judged":                             {ITL: metric.Summary{Count: 5}},
		"late, but below the stall threshold":              {ITL: metric.Summary{Count: 100}},
	} {
		if got, _ := Cause(c, r, 3, 5); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The waterfall of a request that was running when llmtop connected gives no time to its first token.
func TestTitleWithoutAStart(t *testing.T) {
	c := &pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)}
	for _, missed := range []bool{false, true} {
		var g grid.Grid
		g.Reset(60, 1)
		r := &store.Request{MissedStart: missed, Enqueued: 10, First: 10, Closed: 20, State: event.StateCancelled}
		waterfallTitle(g.All(), c, &View{Request: r}, axis{from: 10, to: 10})
		if got := g.Plain(); strings.Contains(got, "first token") == missed {
			t.Errorf("start missed %t: %q", missed, got)
		}
	}
}
