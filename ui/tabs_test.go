package ui

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// From 80 columns each tab has a name of its own, beside the keys that every view needs.
func TestTabsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for v := range numTabs {
		name := tabName(shortNames, viewName(v))
		if seen[name] || len(name) < 2 || len(name) > 3 {
			t.Errorf("view %d is called %q", v, name)
		}
		seen[name] = true
	}
	for _, w := range []int{80, 100, 120, 200, 250} {
		for v := range numTabs {
			a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, 24)
			a.show(v)
			rows := strings.Split(strings.TrimRight(a.screen(), "\n"), "\n")
			last := rows[len(rows)-1]
			for tab := range numTabs {
				if want := viewKey(tab) + " " + tabName(shortNames, viewName(tab)) + "  "; !strings.Contains(last, want) && !strings.Contains(last, viewKey(tab)+" "+viewName(tab)) {
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

// The footer drops the least important keys: none that does not fit gives way to one after it. A wider terminal shows no
// fewer keys.
func TestFooterKeepsTheMainKeys(t *testing.T) {
	for _, v := range allViews {
		most := 0
		for w := 62; w <= 250; w += 3 {
			a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, w, 24)
			a.show(v)
			rows := strings.Split(strings.TrimRight(a.screen(), "\n"), "\n")
			dropped, n := "", 0
			for _, b := range a.footerKeys() {
				shown := strings.Contains(rows[len(rows)-1]+"  ", b.Show+" "+b.Word+"  ")
				if shown {
					n++
				}
				switch {
				case b.essential:
				case !shown:
					dropped = b.Word
				case dropped != "":
					t.Errorf("%d columns, view %d: the footer shows %s instead of %s", w, v, b.Word, dropped)
				}
			}
			if n < most {
				t.Errorf("%d columns, view %d: %d keys, a narrower terminal has %d", w, v, n, most)
			}
			most = n
		}
	}
}
