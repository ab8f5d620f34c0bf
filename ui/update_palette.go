package ui

import tea "charm.land/bubbletea/v2"

// onPaletteKey edits the search, moves the selection, or runs the selected command.
func (a *app) onPaletteKey(name, text string) tea.Cmd {
	p := &a.palette
	switch name {
	case "enter":
		return a.choosePalette(p.selected)
	case "esc", "ctrl+c":
		p.open = false
	case "up", "ctrl+p", "shift+tab":
		a.movePalette(-1)
	case "down", "ctrl+n", "tab":
		a.movePalette(1)
	case "pgup":
		a.movePalette(-page)
	case "pgdown":
		a.movePalette(page)
	default:
		p.line.edit(name, text)
		p.selected, p.first = 0, 0
	}
	return nil
}

// movePalette moves the selection by a number of commands.
func (a *app) movePalette(by int) {
	a.palette.selected = max(min(a.palette.selected+by, len(a.matches())-1), 0)
}

// choosePalette closes the palette and runs the command of a row, as its key does.
func (a *app) choosePalette(row int) tea.Cmd {
	found := a.matches()
	if row >= len(found) {
		return nil
	}
	a.palette.open = false
	return a.run(found[row].act, found[row].key)
}

// clickPalette runs the command under the mouse; a click elsewhere closes the palette.
func (a *app) clickPalette(x, y int) tea.Cmd {
	if p := &a.palette; p.at.Has(x, y) {
		return a.choosePalette(p.first + y - p.at.Y)
	}
	a.palette.open = false
	return nil
}
