package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// described returns the bands of a snapshot, with the ids of the requests of each cell.
func described(s *store.Snapshot) string {
	var out []string
	for _, b := range bands(s) {
		words := b.by + ":"
		for _, c := range b.cells {
			words += " " + c.name
			for _, r := range c.requests {
				words += fmt.Sprintf(" #%d", r.ID)
			}
		}
		out = append(out, words)
	}
	return strings.Join(out, "; ")
}

// Requests are divided by what they differ in, and only by that.
func TestBands(t *testing.T) {
	request := func(id int, model, label string, slot int) *store.Request {
		return &store.Request{ID: event.RequestID(id), Model: model, Label: label, Slot: slot}
	}
	for _, c := range []struct {
		requests []*store.Request // newest first
		want     string
	}{
		{nil, ""},
		{[]*store.Request{request(2, "", "code", -1), request(1, "", "code", -1)}, ""},
		{
			[]*store.Request{request(3, "", "novel", -1), request(2, "", "", -1), request(1, "", "novel", -1)},
			"kind of prompt: novel #1 #3 other #2",
		},
		{
			[]*store.Request{request(3, "a", "", 10), request(2, "", "", 9), request(1, "b", "", 9)},
			"model: a #3 b #1 loaded model #2; slot: slot 9 #1 #2 slot 10 #3",
		},
	} {
		if got := described(&store.Snapshot{Requests: c.requests}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	late := request(2, "", "", -1) // began before llmtop attached
	late.MissedStart = true
	if got := described(&store.Snapshot{Requests: []*store.Request{request(3, "a", "code", -1), late, request(1, "a", "code", -1)}}); got != "" {
		t.Errorf("a request whose start was missed: %q", got)
	}
	if got := described(viewtest.Played("slots")); !strings.HasPrefix(got, "slot: slot 0 #4 slot 1 #5") {
		t.Errorf("slots: %q", got)
	}
}

// Numbers that an engine does not report have a word, and what does not fit is counted.
func TestBreakdownInventsNothing(t *testing.T) {
	p := viewtest.NewScreen(t, viewtest.Played("slots"), viewtest.Size{W: 100, H: 20})
	v := newView(Layout{})
	v.Focus = Breakdown
	text := p.Show(Zoomed{v}).Text()
	if !strings.Contains(text, "TTFT not reported") || strings.Contains(text, "TTFT p50") {
		t.Errorf("TTFT of polled slots:\n%s", text)
	}
	var many []*store.Request
	for id := range 40 {
		many = append(many, &store.Request{ID: event.RequestID(id + 1), Label: fmt.Sprint("kind ", id/2), Slot: -1, TTFT: event.MeasuredValue(float64(id + 1))})
	}
	many = append(many, many[0], many[1])
	crowd := *viewtest.LiveSnapshot()
	crowd.Requests = many
	text = viewtest.NewScreen(t, &crowd, viewtest.Size{W: 100, H: 20}).Show(Zoomed{v}).Text()
	if !strings.Contains(text, "16 more") || !strings.Contains(text, "kind 0") || !strings.Contains(text, "4 requests") {
		t.Errorf("20 kinds:\n%s", text)
	}
}

// The default layout has a breakdown where there is room, and data for it.
func TestBreakdownTakesFreeRoom(t *testing.T) {
	for _, c := range []struct {
		s    *store.Snapshot
		w, h int
		want bool
	}{
		{viewtest.LiveSnapshot(), 200, 57, true},
		{viewtest.LiveSnapshot(), 250, 67, true},
		{viewtest.LiveSnapshot(), 199, 57, false},
		{viewtest.LiveSnapshot(), 200, 39, false},
		{viewtest.Played("slots"), 200, 57, true},
		{viewtest.Played("vllm"), 200, 57, false},
		{store.Empty(), 200, 57, false},
	} {
		body := grid.Rect{Y: 2, W: c.w, H: c.h}
		panes, low := splitBreakdown(body, c.s)
		if got := low.H > 0; got != c.want || panes.H+low.H != body.H || got && (low.Y != panes.Y+panes.H || panes.H < 24) {
			t.Errorf("%dx%d: %+v and %+v, want a breakdown: %v", c.w, c.h, panes, low, c.want)
		}
	}
}
