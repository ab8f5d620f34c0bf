package ui

import (
	"maps"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// native returns a session of the native engine, which does not time operations.
func native(s *viewtest.Scene) *store.Snapshot {
	v := *s.Snapshot()
	v.Engine.Caps &^= event.CapOps
	return &v
}

// tracesOnly returns a receiver of traces that got one request.
func tracesOnly() *store.Snapshot {
	v := *viewtest.Played("traces")
	v.Engine.State = event.EngineReady
	return &v
}

// Views without data of the kind of engine are not offered: neither tab, nor help, nor palette; their key says why.
func TestViewsOffered(t *testing.T) {
	const (
		picks      = "router picks: not reported"
		perRequest = "per-request metrics: not reported"
		latencies  = "latencies: not reported"
		times      = "time per operation: not reported"
	)
	counted := map[viewID]string{viewRequests: perRequest, viewRequest: perRequest, viewExperts: picks, viewOps: times}
	nothing := maps.Clone(counted)
	nothing[viewLatency] = latencies
	for _, c := range []struct {
		name    string
		s       *store.Snapshot
		missing map[viewID]string // the views that are not offered, with a part of the note
	}{
		{"native MoE", native(viewtest.Live()), map[viewID]string{viewOps: times}},
		{"native dense", native(viewtest.Dense()), map[viewID]string{viewExperts: "dense model", viewOps: times}},
		{"llama.cpp", viewtest.Timed().Snapshot(), nil},
		{"llama.cpp server with slots", viewtest.Played("slots"), map[viewID]string{viewExperts: picks, viewOps: times}},
		{"vLLM", viewtest.Played("vllm"), counted},
		{"models only", viewtest.Played("bare"), nothing},
		{"SGLang without metrics", viewtest.Played("untimed"), nothing},
		{"traces only", tracesOnly(), map[viewID]string{viewExperts: picks, viewOps: times}},
		{"empty", store.Empty(), nil},
		{"loading", native(viewtest.Loading()), nil},
		{"loading server", viewtest.Played("models"), nil},
		{"never reached", viewtest.Played("unreached"), nil},
		{"failed", native(viewtest.Failed()), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range append(allViews[:numTabs:numTabs], viewOps) {
				a := open(c.s, theme.TrueColour, false, 200, 50)
				a.View()
				_, tabbed := a.drawnTabs[v]
				name := strings.ToLower(viewName(v))
				listed := slices.ContainsFunc(a.commands(), func(d command) bool { return strings.HasSuffix(d.name, name) })
				key := "o"
				if v != viewOps {
					key = viewKey(v)
				}
				a.press(key)
				why, missing := c.missing[v]
				switch shown := a.view == v; {
				case shown == missing, listed == missing, tabbed == (missing || v == viewOps):
					t.Errorf("%s: shown %v, in the palette %v, in the tabs %v", viewName(v), shown, listed, tabbed)
				case missing:
					holds(t, a, why)
					if a.press("?"); strings.Contains(a.help.textOf(200, viewOverview, a.working()), "in "+name+": ") {
						t.Errorf("the help lists keys of %s", viewName(v))
					}
				}
			}
		})
	}
}

// The note about a view fits narrow screens: there the advice replaces the reason.
func TestMissingViewNote(t *testing.T) {
	for w, want := range map[int]string{
		60:  "time per operation: not reported by this engine",
		80:  "Operations: llama.cpp does: llmtop run MODEL.gguf --engine llamacpp --ops",
		120: "time per operation: not reported by this engine; llama.cpp does: llmtop run MODEL.gguf --engine llamacpp --ops",
	} {
		a := open(native(viewtest.Live()), theme.TrueColour, false, w, 30)
		a.press("o")
		holds(t, a, want)
	}
}

// With several engines, a view that the next one does not offer is left for the overview; their list offers all views.
func TestMissingViewOfAnotherEngine(t *testing.T) {
	moe, vllm := native(viewtest.Live()), viewtest.Played("vllm")
	all := []Session{
		{Name: "moe", Snapshots: func() *store.Snapshot { return moe }},
		{Name: "vllm", Snapshots: func() *store.Snapshot { return vllm }},
	}
	a := openFleet(&all, false, 160, 40)
	if a.View(); len(a.drawnTabs) != int(numTabs) {
		t.Errorf("the list of engines offers %d views", len(a.drawnTabs))
	}
	a.press("enter", "5", "]")
	if holds(t, a, "router picks: not reported"); a.view != viewOverview || a.session.Name != "vllm" {
		t.Errorf("the next engine shows view %d", a.view)
	}
	a.press("[", "5", "7", "down", "enter", "7", "5")
	if a.view != viewEngines {
		t.Errorf("a view that is not offered leads from the list to view %d", a.view)
	}
	a.press("esc", "[", "5", "?", "]", "esc")
	if a.view != viewOverview {
		t.Errorf("the help goes back to view %d, which is not offered", a.view)
	}
	a.press("[", "5", "space")
	if a.press("]"); a.view != viewOverview {
		t.Errorf("while paused, the next engine shows view %d", a.view)
	}
	a.press("space", "[", "5")
	all = all[1:]
	a.Update(tickMsg{})
	a.press("esc", "1")
	if a.view != viewOverview || a.session.Name != "vllm" {
		t.Errorf("after the engine has gone, view %d of %q is shown", a.view, a.session.Name)
	}
}

// A view on the screen is left once the engine turns out not to offer it, but not while the user moves in time.
func TestMissingViewOnScreen(t *testing.T) {
	now := native(viewtest.Loading())
	a := newApp(Config{Sessions: One(Session{Snapshots: func() *store.Snapshot { return now }})})
	a.Update(tea.WindowSizeMsg{Width: 120, Height: 36})
	a.press("5")
	now = native(viewtest.Dense())
	if a.Update(tickMsg{}); a.view != viewOverview {
		t.Errorf("view %d of a dense model stays", a.view)
	}
	now = native(viewtest.Live())
	a.Update(tickMsg{})
	a.press("5", "space")
	a.snap = native(viewtest.Dense())
	a.updateOffers()
	if holds(t, a, "dense model: no router"); a.view != viewExperts {
		t.Errorf("going back in time leads to view %d", a.view)
	}
}
