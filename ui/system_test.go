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
	"github.com/llmtop/llmtop/ui/panes"
)

// server is a machine with many cores and two accelerators in a control group, and a model in a file.
func server() *store.Snapshot {
	s := *crowdSnapshots(5000)
	h := s.Host.Host
	h.Cores, h.Clocks = nil, nil
	for i := range 48 {
		h.Cores, h.Clocks = append(h.Cores, float64(i*7%48)/48), append(h.Clocks, 2.1e9+float64(i%5)*2e8)
	}
	h.CPULimit, h.Throttled, h.Limited, h.MemTotal = event.Of(16), event.Of(0.12), true, event.Of(64e9)
	h.Power, h.NoGPU = event.Of(212), ""
	h.GPUs = []event.GPU{
		{Name: "NVIDIA H200", Util: event.Of(.91), MemUsed: event.Of(71e9), MemTotal: event.Of(151e9), Power: event.Of(580), Temperature: event.Of(61), Clock: event.Of(1.98e9)},
		{Name: "NVIDIA H200", Util: event.Of(.13), MemUsed: event.Of(4e9), MemTotal: event.Of(151e9), Power: event.Of(118), Temperature: event.Of(38), Clock: event.Of(345e6)},
	}
	s.Host.Host = h
	s.Host.Series = slices.Clone(s.Host.Series)
	for i := range s.Host.Series {
		v := &s.Host.Series[i].V
		v[store.GaugePower], v[store.GaugeThrottled], v[store.GaugeGPU] = 200+float64(i%9), .1+.002*float64(i%11), .5+.004*float64(i%7)
		v[store.GaugeGPUMemory], v[store.GaugeGPUPower], v[store.GaugeGPUClock], v[store.GaugeGPUHeat] = 75e9, 690+float64(i%13), 1.16e9, 61
	}
	s.Model.Path = "/models/qwen3-30b-a3b-q4_k_m.gguf"
	return &s
}

// The machine of a server, at a stall, in every size, dark and light.
func TestGoldenSystem(t *testing.T) {
	s := server()
	for _, size := range sizes {
		for _, palette := range []int{0, 1} {
			a := open(s, theme.TrueColour, false, size[0], size[1])
			a.theme = palette
			a.dress()
			a.press("2", "/", "s", "t", "a", "l", "l", "e", "d", "enter", "enter", "6")
			golden(t, fmt.Sprintf("system_%dx%d_%s.ansi", size[0], size[1], a.skin.Palette.Name), a.View().Content)
		}
	}
	a := open(s, theme.NoColour, true, 120, 36)
	a.press("6", "end")
	golden(t, "system_120x36_none.ansi", a.View().Content)
}

// Beside each gauge stands what it was in the second in which the token came.
func TestSystemAtTheToken(t *testing.T) {
	s := liveSnapshot()
	a := open(s, theme.TrueColour, false, 160, 45)
	a.press("6")
	holds(t, a, "of #8  the slowest")
	a.press("n")
	a.View()
	v := &a.requests.one
	i := slices.IndexFunc(v.Request.Tokens, func(t store.Token) bool { return t.Nth == v.Token })
	p, ok := s.Host.Around(v.Request.Tokens[i].At)
	if !ok {
		t.Fatalf("no sample around token %d", v.Token)
	}
	holds(t, a, fmt.Sprintf("Token %d of #%d  ", v.Token, v.Request.ID))
	for name, want := range map[string]string{
		"run wait": metric.Percent(p.V[store.GaugeRunWait]), "switches": metric.Rate(p.V[store.GaugeVoluntary]) + "/s", "sent": metric.Bytes(p.V[store.GaugeSent]) + "/s",
	} {
		if row := rowOf(a, name); !strings.Contains(row, " "+want+" ") {
			t.Errorf("%q does not hold %s", row, want)
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

// rowOf is the row of the screen that begins with a name.
func rowOf(a *app, name string) string {
	for row := range strings.Lines(a.screen()) {
		if strings.HasPrefix(row, "│ "+name+" ") {
			return row
		}
	}
	return ""
}

// Correlations need samples with tokens, and say how many there are.
func TestSystemCorrelates(t *testing.T) {
	a := open(liveSnapshot(), theme.TrueColour, false, 160, 45)
	a.press("6")
	holds(t, a, "Spearman, with the mean ITL of the same second; ")
	if row := rowOf(a, "run wait"); !strings.Contains(row, " +0.") {
		t.Errorf("%q has no coefficient", row)
	}
	a.press("w", "w") // by the session on to a second
	holds(t, a, "too few samples with tokens, ")
	if row := rowOf(a, "run wait"); !strings.Contains(row, " - ") {
		t.Errorf("%q has a coefficient of too few samples", row)
	}
}

// What costs more is sampled while the machine is looked at, and no longer.
func TestSystemIsWatchedWhileItIsShown(t *testing.T) {
	a, k := driven(t)
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
		if !slices.Equal(k.looks, step.want) {
			t.Errorf("after %s: %q, want %q", step.key, k.looks, step.want)
		}
	}
	a.zoom(panes.Machine)
	a.Update(tickMsg{})
	if n := len(k.looks); n != 3 {
		t.Errorf("the pane with the whole screen is not watched: %q", k.looks)
	}
}

// What was measured on demand stays, with its age.
func TestSystemTellsAges(t *testing.T) {
	s := *server()
	s.Host.Looked = store.Looked{
		PSS: event.Of(80e6), PSSAt: s.Now - event.Time(5*time.Second), ModelAt: s.Now - event.Time(2*time.Second),
		ModelBytes: event.Of(20e9), ModelCached: event.Of(5e9),
	}
	a := open(&s, theme.TrueColour, false, 200, 60)
	a.press("6")
	if row := rowOf(a, "engine PSS"); !strings.Contains(row, "80.0 MB  5.00 s ago") {
		t.Errorf("%q", row)
	}
	if row := rowOf(a, "model cached"); !strings.Contains(row, "25 %  of 20.0 GB, 2.00 s ago") {
		t.Errorf("%q", row)
	}
	s.Host.Looked.ModelCached = event.Absent(event.NotPermitted)
	if row := rowOf(a, "model cached"); row != "" {
		a.dirty = true
		a.View()
		if row = rowOf(a, "model cached"); !strings.Contains(row, "not permitted") {
			t.Errorf("%q", row)
		}
	}
}
