package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// paletteRows bounds the visible commands of the palette; the list scrolls.
const paletteRows = 14

// palette is the search line for commands and its list of matches.
type palette struct {
	open            bool
	line            editor
	selected, first int
	at              grid.Rect // cells of the list
}

// command is one action of the current view.
type command struct {
	act              action
	key              string // one of its keys in this view
	keys, name, help string
	rank             int // how well it matches the search text, 0 best
}

// show opens the palette with an empty search.
func (p *palette) show() {
	p.line.show()
	p.open, p.selected, p.first = true, 0, 0
}

// commands returns all available actions of the current view in the order of the key table, each view as one command.
// It omits the palette itself.
func (a *app) commands() (out []command) {
	for i := range a.bindings {
		b := &a.bindings[i]
		if b.act == actPalette || !b.views.has(a.view) || !a.available(b.act) {
			continue
		}
		if b.act == actView {
			for v, key := range viewKeys {
				name := "view " + strings.ToLower(tabNames[v])
				out = append(out, command{act: b.act, key: key, keys: key, name: name, help: "show this view"})
			}
			continue
		}
		if k := slices.IndexFunc(b.keys, func(key string) bool { return a.lookup(key) == b.act }); k >= 0 {
			out = append(out, command{act: b.act, key: b.keys[k], keys: b.names(), name: b.name(), help: b.help})
		}
	}
	return out
}

// commandNames name the bindings without a footer text, or with one that is too short.
var commandNames = map[action]string{
	actPrevious: "previous pane", actPageBack: "previous page", actColumnLeft: "sort by column to the left",
	actTokenLeft: "previous token", actRequestAbove: "request above", actBack: "back", actFaster: "faster",
	actSlower: "slower", actList: "engines", actOps: "operations", actPreviousEngine: "previous engine",
	actReport: "report", actSince: "changes since mark", actUnmark: "clear marks", actAlerts: "alerts",
	actExpertLeft: "previous expert", actFindNext: "find next", actBudgetLess: "smaller budget", actUp: "up",
	actDown: "down", actPageUp: "page up", actPageDown: "page down", actTop: "start", actBottom: "end",
	actSuspend: "suspend", actBackward: "back 1 s", actForward: "forward 1 s", actFarBack: "back 10 s",
	actFarOn: "forward 10 s", actPreviousRequest: "previous request", actSpeedDown: "speed down",
	actToBegin: "start", actToEnd: "end",
}

// name returns the name of a binding in the palette.
func (b *binding) name() string { return cmp.Or(commandNames[b.act], b.word) }

// matches returns the commands that match the search text, best first.
func (a *app) matches() (found []command) {
	for _, c := range a.commands() {
		if c.match(string(a.palette.line.text)) {
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

// drawPalette draws the search line in the row of the footer and the matches above it.
func (a *app) drawPalette(all grid.Area) {
	p, gl := &a.palette, a.skin.Glyphs
	line := all.Sub(0, all.H-1, all.W, 1)
	line.Fill(0, 0, line.W, grid.Fg(theme.Dim), ' ')
	line.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), ":")
	used := p.line.drawText(line.Sub(2, 0, line.W-3, 1), gl.ASCII)
	if hint := "enter run  up/down select  esc close"; 2+used+3+grid.Width(hint) < line.W {
		line.Text(2+used+3, 0, grid.Fg(theme.Dim), hint)
	}
	found := a.matches()
	p.selected = max(min(p.selected, len(found)-1), 0)
	rows := max(min(len(found), paletteRows, all.H-4), 0)
	p.first = max(min(p.first, p.selected, len(found)-rows), p.selected-rows+1, 0)
	box := all.Sub(0, all.H-3-max(rows, 1), all.W, max(rows, 1)+2)
	dialog(box, "Commands", strconv.Itoa(len(found))+" of "+strconv.Itoa(len(a.commands())), gl)
	in := box.Inset(1, 1)
	p.at = in.Rect
	if len(found) == 0 {
		in.Text(1, 0, grid.Fg(theme.Dim), "no matching command")
	}
	for y := range rows {
		a.drawCommand(in, y, &found[p.first+y], p.first+y == p.selected)
	}
}

// drawCommand draws one row: keys, name and help.
func (a *app) drawCommand(in grid.Area, y int, c *command, selected bool) {
	const keys, name = 12, 22
	dots := a.skin.Glyphs.Ellipsis
	in.Elide(1, y, keys-1, grid.Fg(theme.Accent).With(grid.Bold), c.keys, dots)
	in.Elide(1+keys, y, name-1, grid.Fg(theme.Data), c.name, dots)
	in.Elide(1+keys+name, y, in.W-keys-name-2, grid.Fg(theme.Text), c.help, dots)
	if selected {
		attr := grid.Attr(0)
		if !a.skin.Colour() {
			attr = grid.Reverse
		}
		in.Paint(0, y, in.W, theme.Select, attr)
	}
}
