package ui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// The built-in layouts in every size.
func TestGoldenLayouts(t *testing.T) {
	s := viewtest.LiveSnapshot()
	for _, name := range overview.Layouts() {
		if name == overview.LayoutDefault {
			continue
		}
		for _, size := range sizes {
			a := open(s, theme.TrueColour, false, size[0], size[1])
			var err error
			if a.overview.Layout, err = overview.ParseLayout(name); err != nil {
				t.Fatal(err)
			}
			a.dirty = true
			viewtest.Golden(t, fmt.Sprintf("layout_%s_%dx%d.txt", name, size[0], size[1]), strings.TrimSuffix(a.screen(), "\n"))
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add("ttft:2 itl | experts @3 | text insights", 120, 36)
	f.Add("router", 60, 18)
	f.Add("ttft:100 itl:1 | @ | :", 1, 1)
	s := viewtest.LiveSnapshot()
	f.Fuzz(func(t *testing.T, text string, w, h int) {
		w, h = max(w, -w, 1)%300, max(h, -h, 1)%100
		l, err := overview.ParseLayout(text)
		if err != nil || w < 1 || h < 1 {
			return
		}
		a := open(s, theme.Colours16, false, w, h)
		a.overview.Layout, a.dirty = l, true
		viewtest.CheckFrame(t, a.View().Content, w, h)
	})
}
