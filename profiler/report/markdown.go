package report

import (
	"github.com/llmtop/llmtop/profiler/clean"
)

// markdown writes a section as Markdown.
func (w writer) markdown(s section) {
	w.WriteString("### " + clean.Markdown(s.title) + "\n\n")
	for _, words := range s.words {
		w.WriteString(clean.Markdown(words) + "\n\n")
	}
	if len(s.rows) == 0 {
		return
	}
	w.markdownRow(s.header)
	for i := range s.header {
		if i < s.left {
			w.WriteString("|---")
		} else {
			w.WriteString("|--:")
		}
	}
	w.WriteString("|\n")
	for _, row := range s.rows {
		w.markdownRow(row)
	}
	w.WriteString("\n")
}

func (w writer) markdownRow(cells []string) {
	for _, cell := range cells {
		w.WriteString("| " + clean.Markdown(cell) + " ")
	}
	w.WriteString("|\n")
}
