package ui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// Each view with a crowd of requests, in every size and colour profile; the profile without colours uses ASCII.
func TestGoldenViews(t *testing.T) {
	s := viewtest.Crowd(5000)
	for v := viewRequests; v < numTabs; v++ {
		for _, size := range sizes {
			a := open(s, theme.TrueColour, false, size[0], size[1])
			a.show(v)
			viewtest.Golden(t, fmt.Sprintf("view_%s_%dx%d.ansi", strings.ToLower(viewName(v)), size[0], size[1]), a.View().Content)
		}
		for p := theme.NoColour; p < theme.TrueColour; p++ {
			a := open(s, p, p == theme.NoColour, 120, 36)
			a.show(v)
			viewtest.Golden(t, fmt.Sprintf("view_%s_120x36_%s.ansi", strings.ToLower(viewName(v)), p), a.View().Content)
		}
	}
}

// The times of operations, with few layers and many, and the texts shown without any.
func TestGoldenOps(t *testing.T) {
	able := viewtest.Ready()
	able.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "llama.cpp", State: event.EngineReady, Caps: event.CapOps}})
	for name, s := range map[string]*store.Snapshot{
		"few": viewtest.Timed().Snapshot(), "many": viewtest.Huge().Snapshot(), "off": able.Snapshot(), "unable": viewtest.LiveSnapshot(), "loading": viewtest.Loading().Snapshot(),
	} {
		for _, size := range sizes {
			a := open(s, theme.TrueColour, false, size[0], size[1])
			a.press("o", "down", "down")
			viewtest.Golden(t, fmt.Sprintf("ops_%s_%dx%d.txt", name, size[0], size[1]), strings.TrimSuffix(a.screen(), "\n"))
		}
	}
	for p := theme.NoColour; p < theme.NumProfiles; p++ {
		a := open(viewtest.Timed().Snapshot(), p, p == theme.NoColour, 120, 36)
		a.press("o")
		viewtest.Golden(t, fmt.Sprintf("ops_120x36_%s.ansi", p), a.View().Content)
	}
}

// The requests table after various keys.
func TestGoldenTable(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		keys string
	}{
		{"one", 1, ""},
		{"twenty", 20, "2jj"},
		{"sorted", 5000, ">>>>>>>"},
		{"filtered", 5000, "/stalled group=adapter-a"},
		{"filter_wrong", 5000, "/ttft>5"},
		{"filter_empty", 5000, "/gen>1M"},
		{"pinned", 5000, "jjjjG"},
	} {
		a := open(viewtest.Crowd(c.n), theme.TrueColour, false, 120, 36)
		a.press("2")
		a.View()
		for _, key := range strings.Split(c.keys, "") {
			a.press(key)
			a.View()
		}
		viewtest.Golden(t, "requests_"+c.name+".txt", strings.TrimSuffix(a.screen(), "\n"))
	}
}

// The view of one request in every state: running, stalled, no longer kept, cold, queued, failed.
func TestGoldenRequest(t *testing.T) {
	crowd := viewtest.Crowd(5000)
	for _, c := range []struct {
		name, filter string
		s            *store.Snapshot
	}{
		{"running", "running", viewtest.LiveSnapshot()},
		{"stalled", "stalled id>4900", crowd},
		{"past", "id=17", crowd},
		{"cold", "cold", viewtest.LiveSnapshot()},
		{"waiting", "queued", crowd},
		{"failed", "failed id>4800", crowd},
	} {
		for _, size := range sizes {
			a := open(c.s, theme.TrueColour, false, size[0], size[1])
			a.press("2", "/")
			a.Update(tea.PasteMsg{Content: c.filter})
			a.View()
			a.press("enter", "enter")
			viewtest.Golden(t, fmt.Sprintf("request_%s_%dx%d.ansi", c.name, size[0], size[1]), a.View().Content)
			if size[0] == 160 {
				a.press("x", "n")
				viewtest.Golden(t, "request_"+c.name+"_whole.txt", strings.TrimSuffix(a.screen(), "\n"))
			}
		}
	}
}
