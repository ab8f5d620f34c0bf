package latency

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// The longest times are kept in descending order, one per request.
func TestOutliersAreTheLongest(t *testing.T) {
	var o outliers
	for i, ns := range []float64{5, 9, 1, 7, 9, 3, 12, 8} {
		o.add(outlier{ns, event.RequestID(i%4 + 1), i})
	}
	// Request 3 had 1 and 12, request 2 had 9 and 3, request 1 had 5 and 9, request 4 had 7 and 8.
	want := [...]outlier{{12, 3, 6}, {9, 2, 1}, {9, 1, 4}}
	if o.n != len(want) || o.list != want {
		t.Errorf("%d of %v, want %v", o.n, o.list, want)
	}
	o = outliers{}
	o.add(outlier{4, 1, 0})
	o.add(outlier{3, 1, 1})
	if o.n != 1 || o.list[0].token != 0 {
		t.Errorf("%d of %v, want the longer one of the request", o.n, o.list)
	}
}

// An axis of any range has at least two labels.
func TestLogAxisHasLabels(t *testing.T) {
	for lo := 1e3; lo < 1e10; lo *= 1.37 {
		for ratio := 2.0; ratio < 1e5; ratio *= 1.3 {
			for _, w := range []int{36, 53, 90} {
				var g grid.Grid
				g.Reset(w, 1)
				drawLogAxis(g.All(), lo, lo*ratio)
				if row := g.Plain(); strings.Count(row, "|") < 2 {
					t.Fatalf("%.3g to %.3g ns in %d cells: %q", lo, lo*ratio, w, row)
				}
			}
		}
	}
}

// The labels of outliers hide no column.
func TestOutlierLabelsHideNoColumn(t *testing.T) {
	values := []float64{1e6, 1.2e6, 1.2e6, 1.2e6, 2e6, 2.1e6, 2.2e6, 2.3e6, 2.3e6, 2.4e6, 9e6}
	draw := func(far *outliers) string {
		var g grid.Grid
		g.Reset(50, 7)
		c := pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)}
		lo, hi := logRange(values)
		logHistogram(g.All(), &c, "ITL", []string{"11 gaps"}, values, lo, hi, far, func(float64) grid.Style { return pane.Plain })
		return g.Plain()
	}
	var far outliers
	far.add(outlier{9e6, 1, 7})
	far.add(outlier{2.4e6, 2, 8})
	bare, labelled := []rune(draw(&outliers{})), []rune(draw(&far))
	for i, r := range bare {
		if r != ' ' && labelled[i] != r {
			t.Fatalf("a label hides a column:\n%s\n%s", string(bare), string(labelled))
		}
	}
	if n := strings.Count(string(labelled), "token"); n != 2 {
		t.Errorf("%d labels, want 2:\n%s", n, string(labelled))
	}
}

// A title without room for all of its texts leaves out whole ones.
func TestHistogramTitle(t *testing.T) {
	for w, want := range map[int]string{60: "cold  1 request, model load included; log scale, peak 1", 46: "cold  1 request, model load included, peak 1", 30: "cold  1 request; log scale"} {
		var g grid.Grid
		g.Reset(w, 7)
		c := pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)}
		logHistogram(g.All(), &c, "cold", []string{keptOf(1, 1, "request"), ", model load included"}, []float64{1e6}, 5e5, 2e6, &outliers{}, func(float64) grid.Style { return pane.Plain })
		if title, _, _ := strings.Cut(g.Plain(), "\n"); strings.TrimSpace(title) != want {
			t.Errorf("%d cells: %q, want %q", w, title, want)
		}
	}
}
