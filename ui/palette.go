package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view"
)

// paletteRows bounds the visible commands of the palette; the list scrolls.
const paletteRows = 14

// palette is the search line for commands and its list of matches.
type palette struct {
	commands        func() []command // of the current view
	open            bool
	line            input.Editor
	selected, first int
	at              grid.Rect // cells of the list
}

// command is one action of the current view.
type command struct {
	keys, name, help string
	do               func()
	rank             int // how well it matches the search text, 0 best
}

// show opens the palette with an empty search.
func (p *palette) show() {
	p.line.Show()
	p.open, p.selected, p.first = true, 0, 0
}

// paste inserts text into the search.
func (p *palette) paste(text string) {
	p.line.Insert(text)
	p.selected = 0
}

// key edits the search, moves the selection, or runs the selected command.
func (p *palette) key(name, text string) {
	switch name {
	case "enter":
		p.run(p.selected)
	case "esc", "ctrl+c":
		p.open = false
	case "up", "ctrl+p", "shift+tab":
		p.move(-1)
	case "down", "ctrl+n", "tab":
		p.move(1)
	case "pgup":
		p.move(-view.Page)
	case "pgdown":
		p.move(view.Page)
	default:
		p.line.Edit(name, text)
		p.selected, p.first = 0, 0
	}
}

// move moves the selection by a number of commands.
func (p *palette) move(by int) { p.selected = max(min(p.selected+by, len(p.matches())-1), 0) }

// run closes the palette and runs the command of a row, as its key does.
func (p *palette) run(row int) {
	if found := p.matches(); row < len(found) {
		p.open = false
		found[row].do()
	}
}

// click runs the command under the mouse; a click elsewhere closes the palette.
func (p *palette) click(x, y int) {
	if p.at.Has(x, y) {
		p.run(p.first + y - p.at.Y)
		return
	}
	p.open = false
}

// matches returns the commands that match the search text, best first.
func (p *palette) matches() (found []command) {
	for _, c := range p.commands() {
		if c.match(p.line.Text()) {
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(x, y command) int { return cmp.Compare(x.rank, y.rank) })
	return found
}

// match ranks a command for the search text and reports whether it matches. From best to worst: its key, the start of
// its name, a part of its name, all words somewhere in name and help, or its letters in order and close to each other.
func (c *command) match(typed string) bool {
	want := strings.ToLower(strings.TrimSpace(typed))
	name, all := strings.ToLower(c.name), strings.ToLower(c.keys+" "+c.name+" "+c.help)
	fields := strings.Fields(want)
	switch {
	case slices.Contains(strings.Fields(c.keys), strings.TrimSpace(typed)):
		c.rank = 0
	case strings.HasPrefix(name, want):
		c.rank = 1
	case strings.Contains(name, want):
		c.rank = 2
	case !slices.ContainsFunc(fields, func(f string) bool { return !strings.Contains(all, f) }):
		c.rank = 3
	default:
		letters := []rune(strings.Join(fields, ""))
		span := shortestMatch(letters, []rune(all))
		c.rank = 3 + span
		return span > 0 && span <= 3*len(letters)
	}
	return true
}

// shortestMatch returns the length of the shortest part of text that contains all letters in order, or 0.
func shortestMatch(letters, text []rune) (least int) {
	for from, r := range text {
		if r != letters[0] {
			continue
		}
		next := 0
		for to := from; to < len(text); to++ {
			if text[to] == letters[next] {
				next++
			}
			if next == len(letters) {
				if n := to - from + 1; least == 0 || n < least {
					least = n
				}
				break
			}
		}
	}
	return least
}

// draw draws the search line in the row of the footer and the matches above it.
func (p *palette) draw(all grid.Area, skin *theme.Skin) {
	gl := skin.Glyphs
	line := all.Sub(0, all.H-1, all.W, 1)
	line.Fill(0, 0, line.W, grid.Fg(theme.Dim), ' ')
	line.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), ":")
	used := p.line.DrawText(line.Sub(2, 0, line.W-3, 1), gl.ASCII)
	if hint := "enter run  up/down select  esc close"; 2+used+3+grid.Width(hint) < line.W {
		line.Text(2+used+3, 0, grid.Fg(theme.Dim), hint)
	}
	found := p.matches()
	p.selected = max(min(p.selected, len(found)-1), 0)
	rows := max(min(len(found), paletteRows, all.H-4), 0)
	p.first = max(min(p.first, p.selected, len(found)-rows), p.selected-rows+1, 0)
	box := all.Sub(0, all.H-3-max(rows, 1), all.W, max(rows, 1)+2)
	pane.Dialog(box, "Commands", strconv.Itoa(len(found))+" of "+strconv.Itoa(len(p.commands())), gl)
	in := box.Inset(1, 1)
	p.at = in.Rect
	if len(found) == 0 {
		in.Text(1, 0, grid.Fg(theme.Dim), "no matching command")
	}
	for y := range rows {
		drawCommand(in, y, &found[p.first+y], p.first+y == p.selected, skin)
	}
}

// drawCommand draws one row: keys, name and help.
func drawCommand(in grid.Area, y int, c *command, selected bool, skin *theme.Skin) {
	const keys, name = 12, 22
	dots := skin.Glyphs.Ellipsis
	in.Elide(1, y, keys-1, grid.Fg(theme.Accent).With(grid.Bold), c.keys, dots)
	in.Elide(1+keys, y, name-1, grid.Fg(theme.Data), c.name, dots)
	in.Elide(1+keys+name, y, in.W-keys-name-2, grid.Fg(theme.Text), c.help, dots)
	if selected {
		attr := grid.Attr(0)
		if !skin.Colour() {
			attr = grid.Reverse
		}
		in.Paint(0, y, in.W, theme.Select, attr)
	}
}
