package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func TestLayoutsPlacePanes(t *testing.T) {
	for _, c := range []struct {
		name string
		w, h int
		want string // pane WxH+X+Y
	}{
		{"latency", 120, 36, "TTFT 120x11+0+1, ITL 120x11+0+12, Throughput 60x12+0+23, Insights 60x12+60+23"},
		{"reading", 120, 36, "Text 80x22+0+1, TTFT 40x22+80+1, ITL 60x12+0+23, Insights 60x12+60+23"},
		{"reading", 60, 36, "Text 60x22+0+1, ITL 30x12+0+23, Insights 30x12+30+23"},
		{"router", 80, 12, "Experts 80x5+0+1, TTFT 40x5+0+6, ITL 40x5+40+6"},
	} {
		l, err := LayoutNamed(c.name)
		if err != nil || l.Name() != c.name {
			t.Fatalf("%q: %q, %v", c.name, l.Name(), err)
		}
		var got []string
		for _, p := range newView(l).arrange(grid.Rect{Y: 1, W: c.w, H: c.h - 2}, viewtest.LiveSnapshot()) {
			got = append(got, fmt.Sprintf("%s %dx%d+%d+%d", p.ID, p.At.W, p.At.H, p.At.X, p.At.Y))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%q at %dx%d: %s, want %s", c.name, c.w, c.h, s, c.want)
		}
	}
}

func TestUnknownLayout(t *testing.T) {
	const want = "use one of default, latency, machine, reading, router"
	if _, err := LayoutNamed("ttft | itl"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
