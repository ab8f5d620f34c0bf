package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/overview"
)

// help is the view of all keys and numbers.
type help struct {
	view.Base
	app   *app
	first int // first row shown

	lines [][]grid.Piece // the text as last drawn, for the following
	w     int
	keys  []binding
	view  viewID

	absent []string // what the engine does not report, each name with how to get it
	shown  string   // what the focused pane showed when the help opened; "" in other views
	words  string   // searched for; "": all rows are shown
	drawn  string   // words, as last drawn
	typing bool
	page   int // rows on the screen
}

// Name implements view.View.
func (h *help) Name() string { return "Help" }

// Open shows the first rows, for what is on the screen now.
func (h *help) Open() {
	*h = help{app: h.app}
	if zoomed := h.app.helpFrom == viewPane; zoomed || h.app.helpFrom == viewOverview {
		h.shown = h.app.overview.Words(h.app.snap, &h.app.panes, zoomed)
	}
}

// Keys implements view.View.
func (h *help) Keys() []view.Key {
	search := func() { h.first, h.words, h.typing = 0, "", true }
	return []view.Key{{Keys: []string{"/"}, Show: "/", Word: "search", Help: "search the help: show only the rows with these words", Do: search}}
}

// Back shows all rows again.
func (h *help) Back() bool {
	found := h.words != ""
	h.words = ""
	return found
}

// Typing implements view.View.
func (h *help) Typing() bool { return h.typing }

// Type edits the words.
func (h *help) Type(key, text string) {
	switch key {
	case "enter":
		h.typing = false
	case "esc":
		h.words, h.typing = "", false
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(h.words)
		h.words = h.words[:len(h.words)-n]
	default:
		h.Paste(text)
	}
	h.first = 0
}

// Paste adds to the words.
func (h *help) Paste(text string) { h.words += sanitize.Line(text) }

// Scroll implements view.View. A page is what the screen shows.
func (h *help) Scroll(by int) {
	if by == view.Page || by == -view.Page {
		by = by / view.Page * max(h.page-1, 1)
	}
	h.first = max(h.first+by, 0)
}

// Draw draws the help for the view from which it was opened.
func (h *help) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in, of, keys := a.Inset(2, 1), h.app.helpFrom, h.app.working()
	var absent []string
	for name, how := range f.NotReported(s) {
		absent = append(absent, name, how)
	}
	same := func(x, y binding) bool { return x.is(&y) && x.views == y.views }
	if h.w != in.W || h.view != of || h.drawn != h.words || !slices.EqualFunc(h.keys, keys, same) || !slices.Equal(h.absent, absent) {
		h.w, h.view, h.keys, h.absent, h.drawn = in.W, of, keys, absent, h.words
		h.lines = h.text(in.W, of, keys)
	}
	h.page, h.first = in.H, max(min(h.first, len(h.lines)-in.H), 0)
	hint := "/ search  esc back"
	switch {
	case h.typing || h.words != "":
		hint = "search: " + h.words
		if h.typing {
			hint += string(f.Skin.Glyphs.Cursor)
		}
	case h.first+in.H < len(h.lines):
		hint = "down for more  " + hint
	}
	pane.Dialog(a, "Help", hint, f.Skin.Glyphs)
	for y, pieces := range h.lines[h.first:min(h.first+in.H, len(h.lines))] {
		l := in.Line(0, y)
		for _, p := range pieces {
			l.Put(p.Style, p.Words)
		}
	}
}

// terms calls add for each number that a pane may show, or with overview.NumPanes of the whole screen: with the name by
// which panes call it, its title, its unit and its meaning.
func terms(of overview.ID, add func(name, title, unit, help string)) {
	for i := range store.Latencies {
		if l := &store.Latencies[i]; of != overview.Machine && of != overview.Experts {
			add(l.Name, l.Title, "s", l.Help)
		}
	}
	for _, n := range slices.Concat(store.Rates, store.Totalled) {
		if n.Title != "" && of != overview.Machine && of != overview.Experts {
			add(n.Title, n.Title, n.Unit.String(), n.Help)
		}
	}
	for _, n := range store.Terms {
		if of != overview.Machine {
			add(n.Title, n.Title, n.Unit, n.Help)
		}
	}
	for _, n := range store.ScreenTerms {
		add(n.Title, n.Title, n.Unit, n.Help)
	}
	for g := range event.NumGauges {
		if r := g.Info(); of == overview.Machine || of == overview.NumPanes {
			add(r.Title, r.Title, r.Unit.String(), r.Help)
		}
	}
}

// text returns all rows of the help for a view, w cells wide, in order: the keys of the view and what helps there, then
// the rest of a table of keys.
func (h *help) text(w int, v viewID, table []binding) [][]grid.Piece {
	t := helpText{w: w, words: strings.ToLower(h.words)}
	inTime := false
	for _, own := range []bool{true, false} { // those of this view first
		t.heading("Keys")
		if h.shown != "" && !own {
			t.pane(h.app.overview.Focus, h.shown)
			t.heading("Keys of all views")
		}
		for _, b := range table {
			inTime = inTime || b.time
			if b.views.has(v) && own == (b.views != everywhere || b.time) {
				t.add(b.names(), "", b.Help)
			}
		}
	}
	if v == viewRequests {
		t.filters()
	}
	if len(h.absent) > 0 {
		t.heading("Not reported by this engine")
	}
	for i := 0; i < len(h.absent); i += 2 {
		t.add(h.absent[i], "", h.absent[i+1])
	}
	t.heading("Values to set after :")
	for _, s := range settings(h.app) {
		t.add(s.name, "", s.usage+": "+s.help)
	}
	t.heading("Health, below the first row")
	for status := verdict.NumStatuses; status > 0; status-- {
		row := verdict.Statuses[status-1]
		t.add(row.Name, "", row.Rule)
	}
	t.heading("What each number means")
	terms(overview.NumPanes, func(_, title, unit, help string) { t.add(title, unit, help) })
	t.heading("Keys of other views")
	for _, b := range table {
		if !b.views.has(v) {
			t.add(b.names(), "", "in "+h.app.viewNames(b.views)+": "+b.Help)
		}
	}
	if v != viewRequests {
		t.filters()
	}
	if !inTime {
		t.heading("Keys while the view is paused")
		for _, k := range h.app.travel.keys() {
			if b := (binding{Key: k}); b.why() == "" {
				t.add(b.names(), "", b.Help)
			}
		}
	}
	if len(t.rows) == 0 {
		t.rows = append(t.rows, []grid.Piece{{Style: pane.Dim, Words: "nothing in the help has these words"}})
	}
	return t.rows
}

// helpText collects the rows of the help, w cells wide.
type helpText struct {
	w     int
	words string // that each row has, in lower case
	head  string // heading of the next row
	rows  [][]grid.Piece
}

func (t *helpText) heading(words string) { t.head = words }

// add adds a term, its unit or "", and its explanation, below its heading, if they have the words.
func (t *helpText) add(term, unit, words string) {
	const left = 25
	right := 0
	if unit != "" {
		right = max(10, len(unit)+1)
	}
	if !strings.Contains(strings.ToLower(term+" "+unit+" "+words), t.words) {
		return
	}
	if t.head != "" {
		if len(t.rows) > 0 {
			t.rows = append(t.rows, nil)
		}
		t.rows = append(t.rows, []grid.Piece{{Style: grid.Fg(theme.Title).With(grid.Bold | grid.Underline), Words: t.head}})
		t.head = ""
	}
	columns := [...]grid.Piece{{Style: grid.Fg(theme.Accent), Words: term}, {Style: pane.Dim, Words: unit}, {Style: pane.Plain, Words: words}}
	widths := [len(columns)]int{left - right, right, max(t.w-left, 10)}
	var lines [len(columns)][]string
	for i, c := range columns {
		lines[i] = strings.Split(ansi.Wrap(c.Words, widths[i], ""), "\n")
	}
	for y := range max(len(lines[0]), len(lines[1]), len(lines[2])) {
		row := slices.Clone(columns[:])
		for i := range row {
			row[i].Words = fmt.Sprintf("%-*s", widths[i], strings.Join(lines[i][min(y, len(lines[i])):min(y+1, len(lines[i]))], ""))
		}
		t.rows = append(t.rows, row)
	}
}

// pane adds what a pane of the overview shows, and the meaning of each number whose name is among the words in it.
func (t *helpText) pane(id overview.ID, shown string) {
	t.heading("The focused pane: " + id.String())
	t.add("shows", "", id.About())
	words := strings.FieldsFunc(shown+" "+id.About(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '/' })
	var seen []string
	terms(id, func(name, title, unit, help string) {
		for _, word := range strings.Fields(name) {
			if !slices.Contains(words, word) {
				return
			}
		}
		if !slices.Contains(seen, title) {
			seen = append(seen, title)
			t.add(title, unit, help)
		}
	})
}

// filters adds the filter syntax.
func (t *helpText) filters() {
	t.heading("Filters")
	t.add("conditions", "", "separate conditions with spaces: all must match; a leading minus negates one; put text with spaces in double quotes")
	language := &table.RequestFilters
	for i := range language.Columns {
		c := &language.Columns[i]
		t.add(c.Name, "", c.Means+", for example "+c.Example())
	}
	t.add("words", "", strings.Join(slices.Sorted(maps.Keys(language.Flags)), ", ")+"; any other word matches group, label, model or reason; #7 matches request 7")
}
