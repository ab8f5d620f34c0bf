package ui

import (
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// ctrl+d and ctrl+u page like pgdown and pgup in every view and in the screens without views.
func TestCtrlPages(t *testing.T) {
	same := func(where string, draw func(keys ...string) string) {
		t.Helper()
		for _, c := range [][2]string{{"pgdown", "ctrl+d"}, {"pgup", "ctrl+u"}} {
			if draw("end", "pgup", c[0]) != draw("end", "pgup", c[1]) {
				t.Errorf("%s: %s does not do what %s does", where, c[1], c[0])
			}
		}
		if draw("home") == draw("home", "ctrl+d") || draw("end") == draw("end", "ctrl+u") {
			t.Errorf("%s: ctrl+d and ctrl+u move nothing", where)
		}
	}
	for _, v := range []viewID{viewRequests, viewSystem, viewHelp} {
		same(viewName(v), func(keys ...string) string {
			a := open(viewtest.Crowd(20), theme.TrueColour, false, 80, 24)
			a.show(v)
			a.View()
			for _, key := range keys {
				a.press(key)
				a.View()
			}
			return a.View().Content
		})
	}
	same("engines to choose", func(keys ...string) string {
		rows := append(someCandidates(), someCandidates()...)
		c := choosing(&rows, theme.TrueColour, false, 80, 12)
		c.pressed(keys...)
		return c.View().Content
	})
}
