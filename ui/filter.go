package ui

import (
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// filtering is the line in which the filter of a table is typed. What has been typed is in force as far as it can be read.
type filtering[F any] struct {
	typing bool
	line   editor
	before F     // to go back to
	err    error // what is wrong with what has been typed
}

// begin opens the line with the filter that is in force, and its text.
func (l *filtering[F]) begin(now F, text string) {
	l.typing, l.before, l.err = true, now, nil
	l.line.show()
	l.line.set(text, "")
}

// edit takes a key, and reports whether now has become another filter.
func (l *filtering[F]) edit(name, text string, now *F, parse func(string) (F, error)) (changed bool) {
	switch name {
	case "enter":
		l.typing = l.err != nil
		return false
	case "esc", "ctrl+c":
		l.typing, *now = false, l.before
		return true
	}
	l.line.edit(name, text)
	return l.apply(now, parse)
}

// insert takes pasted text, and reports whether now has become another filter.
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

// drawOn draws the line into the lower border of a table while it is typed, else the text of the filter that is in force.
func (l *filtering[F]) drawOn(area grid.Area, text, syntax string, skin *theme.Skin) {
	box := area.Sub(1, area.H-1, area.W-2, 1)
	switch {
	case l.typing:
		note := "enter keep  esc undo"
		if len(l.line.text) == 0 {
			note = syntax + "   " + note
		}
		drawTyped(box, &l.line, l.err, note, skin)
	case text != "":
		box.Elide(1, 0, box.W-2, grid.Fg(theme.Accent), " filter: "+sanitize.Line(text)+" ", skin.Glyphs.Ellipsis)
	}
}

// drawTyped draws what is typed after a slash, with what is wrong with it, else a note.
func drawTyped(a grid.Area, line *editor, wrong error, note string, skin *theme.Skin) {
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

// click sorts a table by the head under the mouse, or selects the row there; it reports whether that was selected before.
func click[F any](t *panes.Rows[F], x, y int, sort func(F), pin func(row int)) (again bool) {
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
