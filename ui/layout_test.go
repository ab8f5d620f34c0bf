package ui

import (
	"testing"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

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
