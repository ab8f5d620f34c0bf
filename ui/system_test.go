package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// Each gauge shows its value in the second of the selected token.
func TestSystemAtTheToken(t *testing.T) {
	s := viewtest.LiveSnapshot()
	a := open(s, theme.TrueColour, false, 160, 45)
	a.press("6")
	holds(t, a, "of #8  the slowest")
	a.press("n")
	a.View()
	v := a.request
	i := slices.IndexFunc(v.Request.Tokens, func(t store.Token) bool { return int(t.Nth) == v.Token })
	p, ok := s.Host.SampleAt(v.Request.Tokens[i].At)
	if !ok {
		t.Fatalf("no sample around token %d", v.Token)
	}
	holds(t, a, fmt.Sprintf("Token %d of #%d  ", v.Token, v.Request.ID))
	for name, want := range map[string]string{
		"run wait": metric.Percent(p.V[event.GaugeRunWait]), "switches": metric.Rate(p.V[event.GaugeVoluntary]) + "/s", "sent": metric.Bytes(p.V[event.GaugeSent]) + "/s",
	} {
		if row := rowOf(a, name); !strings.Contains(row, " "+want+" ") {
			t.Errorf("%q does not contain %s", row, want)
		}
	}
	was := v.Token
	a.press("left")
	if a.View(); v.Token != was-1 {
		t.Errorf("left leads from token %d to %d", was, v.Token)
	}
	a.press(">")
	a.View()
	holds(t, a, fmt.Sprintf("of #%d", s.Requests[1].ID))
}

// rowOf returns the row of the screen that starts with a name.
func rowOf(a *app, name string) string {
	for row := range strings.Lines(a.screen()) {
		if strings.HasPrefix(row, "│ "+name+" ") {
			return row
		}
	}
	return ""
}

// Correlations need samples with tokens, and show their number.
func TestSystemCorrelates(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 160, 45)
	a.press("6")
	holds(t, a, "Spearman correlation with the mean ITL of the same second; ")
	if row := rowOf(a, "run wait"); !strings.Contains(row, " +0.") {
		t.Errorf("%q has no coefficient", row)
	}
	a.press("w", "w") // past the session window to 1 s
	holds(t, a, "too few samples with tokens, ")
	if row := rowOf(a, "run wait"); !strings.Contains(row, " - ") {
		t.Errorf("%q has a coefficient from too few samples", row)
	}
}

// Closer sampling is on only while the machine is on the screen.
func TestSystemIsWatchedWhileItIsShown(t *testing.T) {
	a, k := withCalls(t)
	for _, step := range []struct {
		key  string
		want []string
	}{
		{"4", nil},
		{"6", []string{"watch (built in) true"}},
		{"w", []string{"watch (built in) true"}},
		{"1", []string{"watch (built in) true", "watch (built in) false"}},
	} {
		a.press(step.key)
		a.Update(tickMsg{})
		a.Update(tickMsg{})
		if !slices.Equal(k.machine, step.want) {
			t.Errorf("after %s: %q, want %q", step.key, k.machine, step.want)
		}
	}
	a.zoom(overview.Machine)
	a.Update(tickMsg{})
	if n := len(k.machine); n != 3 {
		t.Errorf("the full-screen pane does not turn closer sampling on: %q", k.machine)
	}
}

// Measurements on demand stay, with their age.
func TestSystemShowsAges(t *testing.T) {
	s := *viewtest.MachineOfServer()
	host := *s.Host.Host
	s.Host.Host, s.Host.PSSAt, s.Host.ModelAt = &host, s.Now-event.Time(5*time.Second), s.Now-event.Time(2*time.Second)
	host.Engine.PSS, host.ModelBytes, host.ModelCached = event.MeasuredValue(80e6), event.MeasuredValue(20e9), event.MeasuredValue(5e9)
	a := open(&s, theme.TrueColour, false, 200, 60)
	a.press("6")
	if row := rowOf(a, "engine PSS"); !strings.Contains(row, "80.0 MB  5.00 s ago") {
		t.Errorf("%q", row)
	}
	if row := rowOf(a, "model cached"); !strings.Contains(row, "25 %  of 20.0 GB, 2.00 s ago") {
		t.Errorf("%q", row)
	}
	host.ModelCached = event.Absent(event.NotPermitted)
	if row := rowOf(a, "model cached"); row != "" {
		a.dirty = true
		a.View()
		if row = rowOf(a, "model cached"); !strings.Contains(row, "not permitted") {
			t.Errorf("%q", row)
		}
	}
}
