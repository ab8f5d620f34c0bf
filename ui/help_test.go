package ui

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// textOf returns the text of the help, a line per row.
func (h *help) textOf(w int, v viewID, table []binding) string {
	var out strings.Builder
	for _, row := range h.text(w, v, table) {
		for _, p := range row {
			out.WriteString(p.Words)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// keysInHelp returns the first part of the help: the keys of the view from which it was opened.
func keysInHelp(a *app) string {
	words, _, _ := strings.Cut(a.help.textOf(160, a.helpFrom, a.working()), "Values to set")
	return words
}

// Help opened from the list of engines explains the list, and goes back there.
func TestHelpOfEngines(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	a := openFleet(&all, false, 120, 36)
	for _, close := range []string{"esc", "?"} {
		a.press("2", "7", "?")
		if words := keysInHelp(a); !strings.Contains(words, "show the selected engine") || strings.Contains(words, "open the selected request") {
			t.Errorf("the help of the list of engines:\n%s", words)
		}
		if a.press(close); a.view != viewEngines {
			t.Errorf("%s leads from the help to view %d", close, a.view)
		}
		if a.press("esc"); a.view != viewRequests {
			t.Errorf("esc leads from the list of engines to view %d", a.view)
		}
	}
}

// The help lists only keys and settings that can work: not those of other sources, nor of one engine among one.
func TestHelpOmitsKeysThatCannotWork(t *testing.T) {
	const prompt, cancel, pace, phase, next, filter = "type a prompt", "cancel the request", "raise the pace", "switch router picks", "switch to the next engine", "filter three or more servers"
	replayed := openReplay(newPlayer(), 160, 45)
	proxied := open(tracesOnly(), theme.TrueColour, false, 160, 45)
	proxied.changeSession(func(x *Session) { x.Actions = view.Actions{} })
	for name, c := range map[string]struct {
		app  *app
		want map[string]bool
	}{
		"live":   {open(viewtest.LiveSnapshot(), theme.TrueColour, false, 160, 45), map[string]bool{prompt: true, cancel: true, pace: true, phase: true}},
		"replay": {replayed, map[string]bool{phase: true, "play or pause": true}},
		"proxy":  {proxied, nil},
	} {
		words := c.app.help.textOf(300, viewOverview, c.app.working())
		for _, key := range []string{prompt, cancel, pace, phase, next, filter, "play or pause"} {
			if strings.Contains(words, key) != c.want[key] {
				t.Errorf("%s: the help lists %q: %v", name, key, !c.want[key])
			}
		}
		if strings.Contains(words, "limit generation to N") != c.want[pace] {
			t.Errorf("%s: the help lists the setting of the pace: %v", name, !c.want[pace])
		}
		if c.app.view != viewOverview {
			t.Errorf("%s: the view changed", name)
		}
	}
	if a := proxied; a.find("e").why() == "" {
		t.Error("the phase of router picks is offered without picks")
	}
}

// The list of engines offers filter and order only with replicas to compare, in the help as in the footer.
func TestFilterOfEnginesIsOfferedWithReplicas(t *testing.T) {
	for name, engines := range map[string][]viewtest.Engine{"list": viewtest.SeveralEngines()[:2], "replicas": viewtest.Replicas(9)} {
		all, filters := sessionsOf(engines), name == "replicas"
		a := openFleet(&all, false, 160, 45)
		if got := strings.Contains(a.screen(), "/ filter"); got != filters {
			t.Errorf("%s: the footer offers a filter: %v", name, got)
		}
		a.press("?")
		if got := strings.Contains(keysInHelp(a), "filter three or more servers"); got != filters {
			t.Errorf("%s: the help offers a filter: %v", name, got)
		}
		a.press("esc", "/", "w")
		if got := a.typist() != nil; got != filters {
			t.Errorf("%s: letters go to a filter: %v", name, got)
		}
	}
}

// The help of the overview explains the focused pane: what it shows, and the names in it.
func TestHelpExplainsTheFocusedPane(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 160, 45)
	for id, names := range map[overview.ID][]string{
		overview.TTFT:       {"TTFT warm", "tokenize", "prompt", "other", "target"},
		overview.ITL:        {"ITL", "TPOT", "stalls", "p50 p95 p99"},
		overview.Experts:    {"max/mean", "share"},
		overview.Throughput: {"TTPS", "KV cache", "KV held", "bandwidth", "running", "queued", "session", "prefill", "decode"},
		overview.Machine:    {"CPU", "engine RSS", "run wait", "load"},
		overview.Text:       nil,
		overview.Insights:   nil,
		overview.Breakdown:  nil,
	} {
		for _, zoomed := range []bool{false, true} {
			a.show(viewOverview)
			if a.overview.Focus = id; zoomed {
				a.show(viewPane)
			}
			a.show(viewHelp)
			words := keysInHelp(a)
			_, words, _ = strings.Cut(words, "The focused pane: "+id.String())
			words, _, _ = strings.Cut(words, "Keys of all views")
			for _, name := range append(names, id.About()) {
				if !strings.Contains(words, "\n"+name+" ") && !strings.Contains(words, name+"\n") && !strings.Contains(words, name+"  ") {
					t.Errorf("%v, zoomed: %v: %q is not explained in %q", id, zoomed, name, words)
				}
			}
			if id != overview.Machine && strings.Contains(words, "load average") || strings.Contains(words, "missed") {
				t.Errorf("%v: %q explains what the pane does not show", id, words)
			}
			a.back()
		}
	}
	a.show(viewLatency)
	if a.show(viewHelp); strings.Contains(keysInHelp(a), "focused pane:") {
		t.Error("the help of another view explains a pane")
	}
}
