package overview

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// TestTextFoot checks that the border of the text names no prompt of unknown length, and marks lower bounds.
func TestTextFoot(t *testing.T) {
	for want, change := range map[string]func(*store.Request){
		"─ 12 prompt, 1 token ─":      func(r *store.Request) { r.PromptTokens, r.Generated = 12, 1 },
		"─ 7 tokens ─":                func(r *store.Request) { r.Generated = 7 },
		"─ 7+ tokens ─":               func(r *store.Request) { r.Generated, r.AtLeast = 7, true },
		"─ 12 prompt, 1+/64 tokens ─": func(r *store.Request) { r.PromptTokens, r.Generated, r.MaxTokens, r.AtLeast = 12, 1, 64, true },
	} {
		s := *viewtest.LiveSnapshot()
		r := *s.Current
		r.PromptTokens, r.Generated, r.MaxTokens, r.DecodeRate.Origin = 0, 0, 0, 0
		change(&r)
		s.Current = &r
		if got := viewtest.NewScreen(t, &s, viewtest.Medium).Show(&View{}).Text(); !strings.Contains(got, want) {
			t.Errorf("the border lacks %q:\n%s", want, got)
		}
	}
}
