package pane

import (
	"testing"

	"github.com/llmtop/llmtop/theme"
)

// A share above zero differs from the background in every theme and profile.
func TestHeatOfASingleToken(t *testing.T) {
	if shareHeat(0) != theme.Background || shareHeat(1) != theme.Heat(1) {
		t.Error("the scale does not start at the background or end at the hottest colour")
	}
	for _, p := range theme.Palettes() {
		for profile := theme.Colours16; profile < theme.NumProfiles; profile++ {
			if p.Shown(shareHeat(1e-6), profile) == p.Shown(theme.Background, profile) {
				t.Errorf("one token in a million is invisible in %s with %s colours", p.Name, profile)
			}
		}
	}
}
