package pane

import (
	"math"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Stages reported longer than the gap keep their length; their share is at most 1.
func TestSplitLongerThanItsGap(t *testing.T) {
	const most = math.MaxUint32
	tokens := []store.Token{
		{Gap: 1, Split: event.Split{Embed: most, Attention: most, Router: most, Experts: most, Head: most, Sample: most}},
	}
	parts, gap, n := MeanSplit(tokens)
	if gap != 1 || n != 1 {
		t.Fatalf("a gap of %v over %d tokens, want 1 ns over 1", gap, n)
	}
	for i, p := range parts {
		want := TimePart{Dur: most, Share: 1}
		if i == len(parts)-1 { // no time left for "other"
			want = TimePart{}
		}
		if p.Dur != want.Dur || p.Share != want.Share {
			t.Errorf("%s takes %v, a share of %v; want %v and %v", p.Name, p.Dur, p.Share, want.Dur, want.Share)
		}
	}
}

// The legend is complete: the title is shorter where there is little room.
func TestLegendOfTheLayers(t *testing.T) {
	r := &store.Request{ID: 12, Layers: []store.LayerPart{{Attention: 1, Router: 1, Experts: 3}}}
	for w, title := range map[int]string{60: "Prompt of #12 by layer", 47: "Prompt by layer", 40: "By layer"} {
		var g grid.Grid
		g.Reset(w, 3)
		DrawLayers(g.All(), r, &Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain), Scratch: &Scratch{}})
		if screen := g.Plain(); !strings.HasPrefix(screen, title+"  a attention r router e experts") {
			t.Errorf("%d cells:\n%s", w, screen)
		}
	}
}
