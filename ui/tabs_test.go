package ui

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// From 72 columns each tab has a name of its own, beside the keys that every view needs.
func TestTabsHaveNames(t *testing.T) {
	for _, w := range []int{72, 80, 109, 110, 200} {
		seen := map[string]bool{}
		for v := range numTabs {
			name := tabName(viewName(v), w)
			if seen[name] || w < tabNamesWidth && (len(name) < 2 || len(name) > 3) {
				t.Errorf("%d columns: view %d is called %q", w, v, name)
			}
			seen[name] = true
		}
		for v := range numTabs {
			a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, 24)
			a.show(v)
			rows := strings.Split(strings.TrimRight(a.screen(), "\n"), "\n")
			last := rows[len(rows)-1]
			for tab := range numTabs {
				if want := viewKey(tab) + " " + tabName(viewName(tab), w); !strings.Contains(last, want) {
					t.Errorf("%d columns, view %d: %q lacks %q", w, v, last, want)
				}
			}
			for _, want := range []string{"? help", "q quit"} {
				if !strings.Contains(last, want) {
					t.Errorf("%d columns, view %d: %q lacks %q", w, v, last, want)
				}
			}
		}
	}
}

// The footer drops the least important keys: none that does not fit gives way to one after it.
func TestFooterKeepsTheMainKeys(t *testing.T) {
	for _, v := range allViews {
		for w := 72; w <= 200; w += 4 {
			a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, 24)
			a.show(v)
			rows := strings.Split(strings.TrimRight(a.screen(), "\n"), "\n")
			dropped := ""
			for _, b := range a.footerKeys() {
				switch shown := strings.Contains(rows[len(rows)-1]+"  ", b.Show+" "+b.Word+"  "); {
				case b.essential:
				case !shown:
					dropped = b.Word
				case dropped != "":
					t.Errorf("%d columns, view %d: the footer shows %s instead of %s", w, v, b.Word, dropped)
				}
			}
		}
	}
}
