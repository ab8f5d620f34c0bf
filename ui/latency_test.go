package ui

import (
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// latencyKeyCases test the keys of the latency view.
var latencyKeyCases = map[string]func(t *testing.T, a *app, k *calls){
	"page": func(t *testing.T, a *app, _ *calls) {
		a.press("4")
		for _, words := range []string{"TTFT cold", "ITL over time", "TTFT by prompt", "Stalls, newest first"} {
			a.press("tab")
			holds(t, a, words)
		}
	},
	"open stall": func(t *testing.T, a *app, _ *calls) {
		all := a.snap.Latency.Stalls
		last := all[len(all)-1]
		a.press("4", "enter")
		if r := a.request; a.view != viewRequest || r.Request.ID != last.Request || r.Token != last.Index {
			t.Errorf("enter shows token %d of %v in view %d, want %d of #%d", r.Token, r.Request, a.view, last.Index, last.Request)
		}
		holds(t, a, "Token "+strconv.Itoa(last.Index))
		a.press("4", "down", "down", "up", "enter")
		if r, x := a.request, all[len(all)-2]; r.Request.ID != x.Request || r.Token != x.Index {
			t.Errorf("down leads to token %d of #%d, want %d of #%d", r.Token, r.Request.ID, x.Index, x.Request)
		}
		a.press("4", "home", "enter")
		if a.request.Token != last.Index {
			t.Errorf("home leads to token %d, want %d", a.request.Token, last.Index)
		}
	},
	"open row of the pane": func(t *testing.T, a *app, _ *calls) {
		all, rs := a.snap.Latency.Stalls, a.snap.Requests
		a.zoom(overview.ITL)
		a.press("down", "enter")
		if r, x := a.request, all[len(all)-2]; a.view != viewRequest || r.Request.ID != x.Request || r.Token != x.Index {
			t.Errorf("enter in ITL shows token %d of %v in view %d, want %d of #%d", r.Token, r.Request, a.view, x.Index, x.Request)
		}
		a.zoom(overview.TTFT)
		a.press("down", "down", "up", "enter")
		if r := a.request; a.view != viewRequest || r.Request.ID != rs[1].ID || r.Token != 0 {
			t.Errorf("enter in TTFT shows token %d of %v in view %d, want #%d", r.Token, r.Request, a.view, rs[1].ID)
		}
		a.zoom(overview.TTFT)
		a.press("end", "enter")
		if r := a.request; r.Request.ID != rs[len(rs)-1].ID {
			t.Errorf("end leads to #%d, want #%d", r.Request.ID, rs[len(rs)-1].ID)
		}
		a.zoom(overview.Throughput)
		if a.press("enter"); a.view != viewPane {
			t.Errorf("enter in a pane without rows shows view %d", a.view)
		}
	},
	"previous page": func(t *testing.T, a *app, _ *calls) {
		a.press("4", "shift+tab")
		holds(t, a, "Latency ─ TTFT by prompt")
	},
}

// At each size, the latency pages together show all of their content.
func TestLatencyPagesHoldEverything(t *testing.T) {
	s := viewtest.ColdRequests()
	for _, size := range sizes {
		a := open(s, theme.TrueColour, false, size[0], size[1])
		a.press("4")
		var all strings.Builder
		for range latency.NumPages {
			all.WriteString(viewtest.StripStyles(a.View().Content))
			a.press("tab")
		}
		for _, words := range []string{"p99", "TTFT warm", "TTFT cold", "most recent gaps", "1 column = 1 s", "ITL over time", "no trend", "target", "goodput"} {
			if !strings.Contains(all.String(), words) {
				t.Errorf("%dx%d: no page shows %q", size[0], size[1], words)
			}
		}
		for _, words := range []string{"1 column = 1 s", "most recent gaps"} {
			if drawn := strings.Count(all.String(), words); drawn < 2 {
				t.Errorf("%dx%d: %q is on %d pages, want at least 2", size[0], size[1], words, drawn)
			}
		}
	}
}

// The charts show a mark in its second; it moves left as time passes.
func TestChartsShowMarks(t *testing.T) {
	a, s, _ := withHistory(160, 45, theme.TrueColour)
	a.press("4", "tab", "tab", "m")
	column := func() int {
		for _, row := range strings.Split(viewtest.StripStyles(a.View().Content), "\n") {
			if before, _, ok := strings.Cut(row, "m1"+string(a.skin.Glyphs.Up)); ok {
				return len([]rune(before))
			}
		}
		return -1
	}
	wait := func(d time.Duration) {
		s.Now += event.Time(d)
		a.Update(tickMsg{})
	}
	wait(time.Second) // until the second of the mark has its own column
	first := column()
	wait(5 * time.Second)
	if then := column(); first < 0 || then != first-5 {
		t.Errorf("the mark was in column %d, and five seconds later in %d", first, then)
	}
}

// A click on the timeline goes to that moment.
func TestClickOnTheTimeline(t *testing.T) {
	a, _, _ := withHistory(160, 45, theme.TrueColour)
	a.press("space")
	a.View()
	bar, at := a.history.timeline, a.track
	a.Update(tea.MouseClickMsg{X: at.X + at.W/2, Y: at.Y, Button: tea.MouseLeft})
	middle := bar.From + (bar.To-bar.From)/2
	if off := a.history.at - middle; off < -(bar.To-bar.From)/event.Time(at.W) || off > (bar.To-bar.From)/event.Time(at.W) {
		t.Errorf("the middle of the timeline leads to %v, want about %v", a.history.at, middle)
	}
	a.press("space")
	a.View()
	if a.Update(tea.MouseClickMsg{X: at.X + 1, Y: at.Y, Button: tea.MouseLeft}); a.status.Paused {
		t.Error("a click changes the time without a timeline")
	}
}
