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
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view"
)

// paletteRows bounds the visible commands of the palette; the list scrolls.
const paletteRows = 14

// palette is the search line for commands and its list of matches.
type palette struct {
	app      *app
	commands func() []command // of the current view
	open     bool
	restore  func() // undoes the preview on the screen; nil: no preview
	before   string // the value that restore restores
	line     input.Editor
	found    []command // match the text; see find
	of       int       // what found was selected from
	list     pane.Rows // of found
}

// command is one action of the current view.
type command struct {
	keys, name, help string
	do               func()
	rank             int // how well it matches the search text, 0 best

	preview func() // shows what do does while the command, a value of a setting, is selected; nil: it has no preview
	opens   string // text with which the command opens the palette again; it does nothing else
}

// show opens the palette with a text.
func (p *palette) show(text string) {
	p.line.Show()
	p.line.Insert(text)
	p.open = true
	p.selectFirst()
}

// close closes the palette and undoes a preview.
func (p *palette) close() {
	p.open, p.found = false, nil
	p.showPreview()
}

// paste inserts text into the search.
func (p *palette) paste(text string) {
	if p.line.Insert(text) {
		p.selectFirst()
	}
}

// selectFirst finds what matches a new text and selects the first match, or the value at hand of a setting.
func (p *palette) selectFirst() {
	p.find()
	p.list.Selected, p.list.First = 0, 0
	if _, rest := p.setting(); strings.TrimSpace(rest) == "" {
		p.list.Selected = max(slices.IndexFunc(p.found, func(c command) bool { return c.keys == "now" }), 0)
	}
	p.showPreview()
}

// showPreview previews the selected command, or undoes the preview if it has none.
func (p *palette) showPreview() {
	var c command
	if p.list.Selected < len(p.found) {
		c = p.found[p.list.Selected]
	}
	if c.preview == nil {
		if p.restore != nil {
			p.restore()
			p.restore = nil
		}
		return
	}
	if p.restore == nil {
		s, _ := p.setting()
		p.before, p.restore = s.now(), s.save()
	}
	c.preview()
}

// setting returns the setting whose name the user typed, and the text after it; nil without one.
func (p *palette) setting() (found *setting, rest string) {
	name, rest, ok := strings.Cut(strings.TrimLeft(p.line.Text(), " "), " ")
	if ok {
		for _, s := range settings(p.app) {
			if s.name == name {
				return &s, rest
			}
		}
	}
	return nil, ""
}

// complete replaces the search by the name of the selected command.
func (p *palette) complete() {
	if p.list.Selected < len(p.found) {
		c := p.found[p.list.Selected]
		p.line.Set(cmp.Or(c.opens, c.name), "")
		p.selectFirst()
	}
}

// key edits the search, moves the selection, or runs the selected command.
func (p *palette) key(name, text string) {
	switch name {
	case "enter":
		p.run(p.list.Selected)
	case "esc", "ctrl+c":
		p.close()
	case "tab":
		p.complete()
	case "up", "ctrl+p":
		p.move(-1)
	case "down", "ctrl+n":
		p.move(1)
	case "pgup":
		p.move(-view.Page)
	case "pgdown":
		p.move(view.Page)
	default:
		if p.line.Edit(name, text) {
			p.selectFirst()
		}
	}
}

// move moves the selection by a number of commands.
func (p *palette) move(by int) {
	p.list.Select(p.list.Selected+by, len(p.found))
	p.showPreview()
}

// run closes the palette and runs the command of a row, as its key does.
func (p *palette) run(row int) {
	found := p.found
	switch {
	case row >= len(found):
	case found[row].opens != "":
		p.show(found[row].opens)
	default:
		p.close()
		found[row].do()
	}
}

// click runs the command under the mouse; a click elsewhere closes the palette.
func (p *palette) click(x, y int) {
	if row, ok := p.list.RowAt(x, y); ok {
		p.run(row)
		return
	}
	p.close()
}

// all returns the commands of the current view and those that open a setting.
func (p *palette) all() []command {
	out := p.commands()
	for _, s := range settings(p.app) {
		out = append(out, command{name: s.name + " " + s.usage, help: s.help, opens: s.name + " "})
	}
	return out
}

// find sets found to the commands that match the search text, best first, or to the values of a setting.
func (p *palette) find() {
	if s, rest := p.setting(); s != nil {
		now := s.now()
		if p.restore != nil {
			now = p.before
		}
		p.found = s.rows(p.app, rest, now)
		p.of = max(len(s.values()), len(p.found))
		return
	}
	all := p.all()
	p.found, p.of = nil, len(all)
	for _, c := range all {
		if c.match(p.line.Text()) {
			p.found = append(p.found, c)
		}
	}
	slices.SortStableFunc(p.found, func(x, y command) int { return cmp.Compare(x.rank, y.rank) })
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
	if len(letters) > len(text) {
		return 0
	}
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
	if hint := "enter run  tab complete  up/down select  esc close"; 2+used+3+grid.Width(hint) < line.W {
		line.Text(2+used+3, 0, grid.Fg(theme.Dim), hint)
	}
	found := p.found
	p.list.Select(p.list.Selected, len(found))
	rows := max(min(len(found), paletteRows, all.H-4), 0)
	box := all.Sub(0, all.H-3-max(rows, 1), all.W, max(rows, 1)+2)
	title, none := "Commands", "no matching command"
	name, _, _ := strings.Cut(strings.TrimSpace(p.line.Text()), " ")
	for _, s := range allSettings(p.app) {
		if s.name == name && s.why != nil && s.why() != "" {
			none = name + ": " + s.why()
		}
	}
	if s, rest := p.setting(); s != nil {
		title = strings.ToUpper(s.name[:1]) + s.name[1:]
		if _, err := s.parse(strings.TrimSpace(rest)); err != nil {
			none = s.name + ": " + sanitize.Line(err.Error())
		}
	}
	pane.Dialog(box, title, strconv.Itoa(len(found))+" of "+strconv.Itoa(p.of), gl)
	in := box.Inset(1, 1)
	from, to := p.list.Show(len(found), in.Sub(0, 0, in.W, rows))
	if len(found) == 0 {
		in.Elide(1, 0, in.W-1, grid.Fg(theme.Watch), none, gl.Ellipsis)
	}
	for i := from; i < to; i++ {
		drawCommand(in, i-from, &found[i], i == p.list.Selected, skin)
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
		pane.SelectRow(in, skin, y)
	}
}
