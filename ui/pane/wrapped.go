package pane

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// textKey identifies the text that was wrapped last; it is wrapped again only when it changes.
type textKey struct {
	id     event.RequestID
	tokens int // generated; a text that is cut at its beginning changes without growing
	length int
	width  int
}

// Wrapped is the text of a request wrapped to the width of its pane.
type Wrapped struct {
	key   textKey
	lines []string
}

// Lines returns the lines of prompt and text, and the number of bytes that belong to the prompt. One line may hold
// the end of the prompt and the start of the text.
func (m *Wrapped) Lines(r *store.Request, w int) ([]string, int) {
	key := textKey{r.ID, r.Generated, len(r.Prompt) + len(r.Text), w}
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
