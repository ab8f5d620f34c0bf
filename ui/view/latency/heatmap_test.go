package latency

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// spreadOf returns a second with the given token counts per bucket.
func spreadOf(at int, counts map[int]uint32) store.LatencyPoint {
	p := store.LatencyPoint{At: event.Time(at) * 1e9, Spread: new(store.Spread)}
	for b, n := range counts {
		p.Spread[b] = n
		p.Count += uint64(n)
	}
	return p
}

// drawn renders a heatmap with the given skin as text.
func drawn(profile theme.Profile, glyphs *theme.Glyphs, w, h int, pts ...store.LatencyPoint) string {
	var g grid.Grid
	g.Reset(w, h)
	c := pane.Frame{Skin: theme.NewSkin(theme.Palettes()[0], profile, glyphs)}
	itlHeatmap(g.All(), &store.Snapshot{Latency: store.Latency{Series: pts}}, &c)
	return g.Plain()
}

// The newest second is at the right, a second without tokens is blank, longer gaps are higher, and a single late token
// is visible.
func TestHeatmapPlacesGaps(t *testing.T) {
	pts := []store.LatencyPoint{
		spreadOf(1, map[int]uint32{40: 1000}),
		{At: 2e9},
		spreadOf(3, map[int]uint32{40: 999, 51: 1}),
	}
	rows := strings.Split(drawn(theme.NoColour, theme.Plain, 60, 13, pts...), "\n")[1:13]
	columns := [3]string{}
	for y := range rows {
		for i := range columns {
			columns[i] += rows[y][57+i : 58+i]
		}
	}
	for i, want := range []string{strings.Repeat(" ", 11) + "@", strings.Repeat(" ", 12), "." + strings.Repeat(" ", 10) + "@"} {
		if columns[i] != want {
			t.Errorf("second %d is drawn as %q, want %q", i+1, columns[i], want)
		}
	}
	if labels := strings.Join(rows, "\n"); !strings.Contains(labels, "10 ms |") || !strings.Contains(labels, "50 ms |") {
		t.Errorf("the axis lacks labels for 10 and 50 ms:\n%s", labels)
	}
}

// With colours a cell shows two lines.
func TestHeatmapHasTwoLinesInACell(t *testing.T) {
	frame := drawn(theme.TrueColour, theme.Unicode, 60, 5, spreadOf(1, map[int]uint32{40: 9, 47: 1}))
	if n := strings.Count(frame, "▀"); n != 2 || strings.Count(frame, "\n") != 5 {
		t.Errorf("two gaps far from each other take %d cells:\n%s", n, frame)
	}
}

// Any series at any size is drawn within its area.
func TestHeatmapOfAnySize(t *testing.T) {
	all := map[int]uint32{}
	for b := range store.SpreadBuckets {
		all[b] = uint32(b) + 1
	}
	for _, pts := range [][]store.LatencyPoint{
		nil, {{At: 1e9}}, {spreadOf(1, map[int]uint32{0: 1})}, {spreadOf(1, map[int]uint32{store.SpreadBuckets - 1: 1 << 31})}, {spreadOf(1, all), spreadOf(2, all)},
	} {
		for w := 1; w < 70; w += 3 {
			for h := 1; h < 60; h += 4 {
				for _, glyphs := range []*theme.Glyphs{theme.Unicode, theme.Plain} {
					if rows := strings.Count(drawn(theme.Colours256, glyphs, w, h, pts...), "\n"); rows != h {
						t.Fatal(fmt.Sprint(w, "x", h, " has ", rows, " rows"))
					}
				}
			}
		}
	}
}
