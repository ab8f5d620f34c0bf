package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// keysInHelp returns the first part of the help: the keys of the view from which it was opened.
func keysInHelp(a *app) string {
	words, _, _ := strings.Cut(ansi.Strip(a.help.text(160, a.helpFrom)), "Values to set")
	return words
}

// Help opened from the list of engines explains the list, and goes back there.
func TestHelpOfEngines(t *testing.T) {
	all := sessionsOf(viewtest.SeveralEngines())
	a := openFleet(&all, false, 120, 36)
	for _, close := range []string{"esc", "?"} {
		a.press("2", "7", "?")
		if words := keysInHelp(a); !strings.Contains(words, "show the selected engine") || strings.Contains(words, "open the selected request") {
			t.Errorf("the help of the list of engines:\n%s", words)
		}
		if a.press(close); a.view != viewEngines {
			t.Errorf("%s leads from the help to view %d", close, a.view)
		}
		if a.press("esc"); a.view != viewRequests {
			t.Errorf("esc leads from the list of engines to view %d", a.view)
		}
	}
}
