package pane

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Wrapped is the text of a request wrapped to the width of its pane, again only when it changes.
type Wrapped struct {
	key   [4]int
	lines []string
}

// Lines returns the lines of prompt and text, and the number of bytes that belong to the prompt. One line may hold
// the end of the prompt and the start of the text.
func (m *Wrapped) Lines(r *store.Request, w int) ([]string, int) {
	key := [...]int{int(r.ID), r.Generated, len(r.Prompt) + len(r.Text), w} // a text cut at its beginning does not grow
	prompt := sanitize.Text(r.Prompt)
	if m.key != key || len(m.lines) == 0 {
		body := sanitize.Partial(r.Text, r.TextCut)
		if r.TextCut {
			body = "… " + body
		}
		m.key, m.lines = key, grid.Wrap(m.lines[:0], prompt+body, w)
		if len(m.lines) == 0 {
			m.lines = append(m.lines, "")
		}
	}
	return m.lines, len(prompt)
}
