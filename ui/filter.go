package ui

import (
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// filtering is the input line for the filter of a table. The filter applies while the user types, as long as the text
// is valid.
type filtering[F any] struct {
	typing bool
	line   editor
	saved  F     // restored by esc
	err    error // error in the text
}

// start opens the line with the current filter and its text.
func (l *filtering[F]) start(now F, text string) {
	l.typing, l.saved, l.err = true, now, nil
	l.line.show()
	l.line.set(text, "")
}

// edit handles a key and reports whether the filter changed.
func (l *filtering[F]) edit(name, text string, now *F, parse func(string) (F, error)) (changed bool) {
	switch name {
	case "enter":
		l.typing = l.err != nil
		return false
	case "esc", "ctrl+c":
		l.typing, *now = false, l.saved
		return true
	}
	l.line.edit(name, text)
	return l.apply(now, parse)
}

// insert inserts pasted text and reports whether the filter changed.
func (l *filtering[F]) insert(text string, now *F, parse func(string) (F, error)) (changed bool) {
	l.line.insert(text)
	return l.apply(now, parse)
}

func (l *filtering[F]) apply(now *F, parse func(string) (F, error)) (changed bool) {
	f, err := parse(string(l.line.text))
	if l.err = err; err != nil {
		return false
	}
	*now = f
	return true
}

// drawFilter draws the input line into the bottom border of a table while the user types, otherwise the text of the current
// filter.
func (l *filtering[F]) drawFilter(area grid.Area, text, syntax string, skin *theme.Skin) {
	box := area.Sub(1, area.H-1, area.W-2, 1)
	switch {
	case l.typing:
		note := "enter keep  esc undo"
		if len(l.line.text) == 0 {
			note = syntax + "   " + note
		}
		drawInput(box, &l.line, l.err, note, skin)
	case text != "":
		box.Elide(1, 0, box.W-2, grid.Fg(theme.Accent), " filter: "+sanitize.Line(text)+" ", skin.Glyphs.Ellipsis)
	}
}

// drawInput draws the input after a slash, then its error or else a note.
func drawInput(a grid.Area, line *editor, wrong error, note string, skin *theme.Skin) {
	a.Fill(0, 0, a.W, grid.Fg(theme.Dim), ' ')
	a.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), "/")
	used := line.drawText(a.Sub(3, 0, a.W-4, 1), skin.Glyphs.ASCII)
	st := theme.Dim
	if wrong != nil {
		note, st = sanitize.Line(wrong.Error()), theme.Bad
	}
	if x := 3 + used + 3; x < a.W {
		a.Elide(x, 0, a.W-x-1, grid.Fg(st), note, skin.Glyphs.Ellipsis)
	}
}

// click sorts a table by the column header under the mouse, or selects the row there; it reports whether that row was
// selected already.
func click[F any](t *pane.Rows[F], x, y int, sort func(F), pin func(row int)) (again bool) {
	if f, ok := t.HeadAt(x, y); ok {
		sort(f)
		return false
	}
	row, ok := t.RowAt(x, y)
	if ok {
		again = row == t.Selected
		pin(row)
	}
	return again
}
