package ui

import "github.com/llmtop/llmtop/ui/view"

// onPaletteKey edits the search, moves the selection, or runs the selected command.
func (a *app) onPaletteKey(name, text string) {
	p := &a.palette
	switch name {
	case "enter":
		a.choosePalette(p.selected)
	case "esc", "ctrl+c":
		p.open = false
	case "up", "ctrl+p", "shift+tab":
		a.movePalette(-1)
	case "down", "ctrl+n", "tab":
		a.movePalette(1)
	case "pgup":
		a.movePalette(-view.Page)
	case "pgdown":
		a.movePalette(view.Page)
	default:
		p.line.Edit(name, text)
		p.selected, p.first = 0, 0
	}
}

// movePalette moves the selection by a number of commands.
func (a *app) movePalette(by int) {
	a.palette.selected = max(min(a.palette.selected+by, len(a.matches())-1), 0)
}

// choosePalette closes the palette and runs the command of a row, as its key does.
func (a *app) choosePalette(row int) {
	found := a.matches()
	if row < len(found) {
		a.palette.open = false
		found[row].do()
	}
}

// clickPalette runs the command under the mouse; a click elsewhere closes the palette.
func (a *app) clickPalette(x, y int) {
	if p := &a.palette; p.at.Has(x, y) {
		a.choosePalette(p.first + y - p.at.Y)
		return
	}
	a.palette.open = false
}
