package pane

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// TestPartsAddUp: however few rows there are, the parts on the screen are those of the whole.
func TestPartsAddUp(t *testing.T) {
	parts := []TimePart{
		{Name: "load", Dur: 101 * time.Millisecond},
		{Name: "queue", Dur: 2 * time.Millisecond},
		{Name: "tokenize", Dur: 2 * time.Millisecond},
		{Name: "embed", Dur: time.Millisecond},
		{Name: "prompt", Dur: 90 * time.Millisecond},
		{Name: "other", Dur: 4 * time.Millisecond},
	}
	for i := range parts {
		parts[i].Share = float64(parts[i].Dur) / float64(200*time.Millisecond)
	}
	skin := theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)
	var g grid.Grid
	for rows := 1; rows <= len(parts)+1; rows++ {
		g.Reset(80, rows)
		DrawTimeParts(g.All(), parts)
		sum := time.Duration(0)
		for line := range strings.SplitSeq(g.Encode(skin), "\n") {
			if f := strings.Fields(line); len(f) > 1 {
				d, err := time.ParseDuration(f[len(f)-2] + f[len(f)-1])
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				sum += d
			}
		}
		if sum != 200*time.Millisecond {
			t.Errorf("%d rows add up to %v:\n%s", rows, sum, g.Encode(skin))
		}
	}
}
