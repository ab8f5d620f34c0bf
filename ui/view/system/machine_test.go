package system

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// An absent run queue wait is as dim as its name, like the other absent values.
func TestAbsentRunWaitIsDim(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	h := *s.Host.Host
	h.Engine.RunWait = event.Absent(event.NotReported)
	s.Host.Host = &h
	f := pane.Frame{Window: metric.Minute, Skin: theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)}
	var g grid.Grid
	g.Reset(60, 20)
	DrawPane(g.All(), &s, &f)
	if text := g.Encode(f.Skin); !regexp.MustCompile(`run wait +not reported`).MatchString(text) { // one style
		t.Errorf("the wait has a style of its own:\n%s", text)
	}
}

// Values of the machine say how old they are once no sample comes any more.
func TestOldSamplesHaveAnAge(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	last := s.Host.At
	for after, want := range map[time.Duration]string{0: "", 4 * time.Second: "", 14 * time.Second: "14 s ago"} {
		s.Now = last + event.Time(after)
		if got := sampleAge(&s); got != want {
			t.Errorf("after %v: %q, want %q", after, got, want)
		}
	}
	s.Host.Sampled = false
	if got := sampleAge(&s); got != "" {
		t.Errorf("without samples: %q", got)
	}
}

// TestManyGPUs: of more GPUs than there is room for, those of the engine are shown, in their order.
func TestManyGPUs(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	h := *s.Host.Host
	h.GPUs = make([]event.GPU, 16)
	for i := range h.GPUs {
		h.GPUs[i] = event.GPU{Name: "card", Util: event.MeasuredValue(.5), EngineMem: event.MeasuredValue(0)}
	}
	h.GPUs[12].EngineMem, h.GPUs[15].EngineMem = event.MeasuredValue(1e9), event.MeasuredValue(2e9)
	s.Host.Host = &h
	f := pane.Frame{Window: metric.Minute, Skin: theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)}
	var g grid.Grid
	g.Reset(60, 14)
	m := Table{}
	if rows := gpuTable(g.All(), &s, &m); rows != 8 {
		t.Errorf("%d rows, want 8", rows)
	}
	text := viewtest.StripStyles(g.Encode(f.Skin))
	if !regexp.MustCompile(`(?s)GPU 0 .*GPU 3 .*GPU 12 engine.*GPU 15 engine.*10 more GPUs: down`).MatchString(text) {
		t.Errorf("the engine's GPUs are missing:\n%s", text)
	}
	m.Scroll(1 << 10)
	g.Reset(60, 14)
	gpuTable(g.All(), &s, &m)
	if text = viewtest.StripStyles(g.Encode(f.Skin)); !regexp.MustCompile(`(?s)GPU 9 .*GPU 12 engine.*GPU 15 engine`).MatchString(text) || strings.Contains(text, "more") {
		t.Errorf("scrolled to the end:\n%s", text)
	}
}

// The CPU of the engine has its unit in a narrow pane.
func TestEngineCPUHasItsUnit(t *testing.T) {
	s := *viewtest.LiveSnapshot()
	h := *s.Host.Host
	h.Engine.CPU, h.Engine.Threads, h.CPULimit = event.MeasuredValue(.09), event.Reading{}, event.Reading{}
	s.Host.Host = &h
	f := pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)}
	for w, want := range map[int]string{24: "9.0 % CPU", 26: "9.0 % of a core"} {
		var g grid.Grid
		g.Reset(w, 1)
		drawProcess(&pane.RowWriter{A: g.All()}, &s, &f)
		if got := g.Plain(); !strings.Contains(got, want) {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}
