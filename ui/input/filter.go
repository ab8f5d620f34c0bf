package input

import (
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Filter is the input line for the filter of a table. The filter applies while the user types, as long as the text
// is valid.
type Filter[F any] struct {
	Typing bool
	line   Editor
	saved  F     // restored by esc
	err    error // error in the text
}

// Start opens the line with the current filter and its text.
func (l *Filter[F]) Start(now F, text string) {
	l.Typing, l.saved, l.err = true, now, nil
	l.line.Show()
	l.line.Set(text, "")
}

// Edit handles a key and reports whether the filter changed.
func (l *Filter[F]) Edit(name, text string, now *F, parse func(string) (F, error)) (changed bool) {
	switch name {
	case "enter":
		l.Typing = l.err != nil
		return false
	case "esc", "ctrl+c":
		l.Typing, *now = false, l.saved
		return true
	}
	return l.line.Edit(name, text) && l.apply(now, parse)
}

// Insert inserts pasted text and reports whether the filter changed.
func (l *Filter[F]) Insert(text string, now *F, parse func(string) (F, error)) (changed bool) {
	return l.line.Insert(text) && l.apply(now, parse)
}

func (l *Filter[F]) apply(now *F, parse func(string) (F, error)) (changed bool) {
	f, err := parse(l.line.Text())
	if l.err = err; err != nil {
		return false
	}
	*now = f
	return true
}

// Draw draws the input line into the bottom border of a table while the user types, otherwise the text of the current
// filter.
func (l *Filter[F]) Draw(area grid.Area, text, syntax string, skin *theme.Skin) {
	box := area.Sub(1, area.H-1, area.W-2, 1)
	switch {
	case l.Typing:
		note := "enter keep  esc undo"
		if l.line.Text() == "" {
			note = syntax + "   " + note
		}
		DrawSearch(box, &l.line, l.err, note, skin)
	case text != "":
		box.Elide(1, 0, box.W-2, grid.Fg(theme.Accent), " filter: "+sanitize.Line(text)+" ", skin.Glyphs.Ellipsis)
	}
}

// DrawSearch draws the input after a slash, then its error or else a note.
func DrawSearch(a grid.Area, line *Editor, wrong error, note string, skin *theme.Skin) {
	a.Fill(0, 0, a.W, grid.Fg(theme.Dim), ' ')
	a.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), "/")
	used := line.DrawText(a.Sub(3, 0, a.W-4, 1), skin.Glyphs.ASCII)
	st := theme.Dim
	if wrong != nil {
		note, st = sanitize.Line(wrong.Error()), theme.Bad
	}
	if x := 3 + used + 3; x < a.W {
		a.Elide(x, 0, a.W-x-1, grid.Fg(st), note, skin.Glyphs.Ellipsis)
	}
}
