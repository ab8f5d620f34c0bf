package report

import (
	"bufio"

	"github.com/llmtop/llmtop/profiler/clean"
)

// tables writes sections as Markdown.
type tables struct{ *bufio.Writer }

func (w *tables) section(s section) {
	w.WriteString("### " + clean.Markdown(s.title) + "\n\n")
	for _, words := range s.words {
		w.WriteString(clean.Markdown(words) + "\n\n")
	}
	if len(s.rows) == 0 {
		return
	}
	w.row(s.header)
	for i := range s.header {
		if i < s.left {
			w.WriteString("|---")
		} else {
			w.WriteString("|--:")
		}
	}
	w.WriteString("|\n")
	for _, row := range s.rows {
		w.row(row)
	}
	w.WriteString("\n")
}

func (w *tables) row(cells []string) {
	for _, cell := range cells {
		w.WriteString("| " + clean.Markdown(cell) + " ")
	}
	w.WriteString("|\n")
}
