package input

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

func TestHistoryIsBounded(t *testing.T) {
	var e Editor
	for i := range 2 * maxHistory {
		e.Set(strings.Repeat("x", i+1), "")
		e.Submit()
		e.Submit() // the same prompt again is one entry
	}
	if len(e.history) != maxHistory {
		t.Errorf("the history has %d prompts", len(e.history))
	}
}

// The row of a long text shows what is around the cursor, with characters that take no cell.
func TestLongTextIsDrawnAroundTheCursor(t *testing.T) {
	const w = 10
	var g grid.Grid
	for _, c := range []struct {
		text  string
		left  int // keys
		shown string
	}{
		{strings.Repeat("x", 5_000) + "end", 0, "xxxxxxend"},
		{strings.Repeat("x", 5_000) + "end" + strings.Repeat("y", 5_000), 5_000, "xxxxxxendy"},
		{strings.Repeat("日", 5_000) + "end", 0, "日日日end"},
	} {
		e := Editor{Max: MaxPrompt}
		e.Set(c.text, "")
		for range c.left {
			e.Edit("left", "")
		}
		g.Reset(w, 1)
		used := e.DrawText(g.All(), false)
		skin := theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Unicode)
		if got := strings.TrimSpace(viewtest.StripStyles(g.Encode(skin))); got != c.shown || used > w {
			t.Errorf("%d characters: %q in %d cells, want %q", len(c.text), got, used, c.shown)
		}
	}
}
