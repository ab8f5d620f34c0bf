package console

import (
	"fmt"
	"io"
	"time"
)

// Progress shows what a command is doing: in one line that it overwrites on a terminal, otherwise in a line per step.
type Progress struct {
	Out   io.Writer
	step  string
	drawn time.Time
}

// redraw is the shortest interval between two updates of a step on a terminal.
const redraw = 100 * time.Millisecond

// Show shows a step: what bar returns on a terminal, otherwise words once.
func (p *Progress) Show(step, words string, bar func() string) {
	fresh, terminal := step != p.step, TerminalOf(p.Out)
	p.step = step
	switch {
	case terminal == nil && fresh:
		fmt.Fprintln(p.Out, words)
	case terminal != nil && (fresh || time.Since(p.drawn) >= redraw):
		p.drawn = time.Now()
		terminal.Overwrite("%s", bar())
	}
}

// Line shows a step that has only words.
func (p *Progress) Line(words string) { p.Show(words, words, func() string { return words }) }

// End removes the line from a terminal.
func (p *Progress) End() {
	if terminal := TerminalOf(p.Out); terminal != nil && p.step != "" {
		terminal.Overwrite("")
	}
}
