package ui

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
)

// glossary defines the numbers on the screen that the catalogues do not have: meaning, formula and unit.
var glossary = []struct{ name, unit, meaning string }{
	{"cold, warm", "s", "TTFT of the first request (includes the model load) and of every later request; never averaged together"},
	{"tokenize", "s", "converting the prompt's text into token ids"},
	{"embed", "s", "looking up the embeddings of the prompt's tokens"},
	{"prompt", "s", "prefill: the forward pass of the prompt through all layers"},
	{"first", "s", "LM head and sampling of the first token"},
	{"other", "s", "TTFT minus all named components; always shown"},
	{"p50 p95 p99", "s", "percentiles of ITL or TTFT over the window in the title; histogram error at most 1/64"},
	{"ITL over time", "0..1", "tokens after a gap of this length / all tokens, per second; four steps per octave, one column per second"},
	{"outliers", "", "histograms: the three longest times, each with its request and token; TTFT above its target, ITL from 3 times the median"},
	{"prefill", "tok/s", "computed prompt tokens (cached tokens excluded) / prefill time"},
	{"decode", "tok/s", "(generated - 1) / decode time = 1 / TPOT"},
	{"TPS", "tok/s", "tokens per second of a group: generated tokens / latency of its requests"},
	{"KV held", "s", "residency: how long a request's cells stayed pinned"},
	{"share", "0..1", "router picks of one expert / all picks of its layer; the map's scale ends at the hottest expert"},
	{"max/mean", "", "load imbalance: picks of a layer's hottest expert / mean picks; 1 is balanced"},
	{"CV, entropy", "", "coefficient of variation of a layer's picks (0 is balanced), and their entropy / maximum entropy (1 is balanced)"},
	{"diff", "0..1", "difference between the picks of one prompt kind and of all prompts: half the sum of the differences of the experts' shares"},
	{"picked together", "", "tokens that picked both experts / all tokens, and the ratio to independent picks"},
	{"budget", "0..1", "picks of the N most picked experts / all picks: share of routing served by a device with a capacity of N experts"},
	{"idle", "experts", "experts of a layer without a pick in the window"},
	{"drift", "0..1", "routing drift since the mark, per layer: half the sum of the differences of the experts' shares; 0: identical, 1: no expert in common. Chance: the mean without any change"},
	{"operations", "s", "time per forward pass, by operation type and layer: total time / profiled passes"},
	{"typical", "", "median of a gauge over the window; next to it the value in the second of the selected token"},
	{"ρ ITL", "-1..1", "Spearman's rank correlation of a gauge with the mean ITL per second; needs 12 seconds with tokens; a hint, not proof of a cause"},
	{"missed", "events", "events of an attached engine that neither arrived nor were counted as dropped; below 0: more arrived than were sent"},
	{"malformed", "lines", "lines of an attached engine that could not be parsed"},
	{"paced", "tok/s", "rate limit: the engine waits between tokens; the wait is excluded from rates and latencies"},
	{"not reported", "", "the engine does not provide this number; it is never shown as 0"},
}

// help is the view of all keys and numbers.
type help struct {
	app   *app
	first int // first row shown

	lines [][]grid.Piece // the text as last drawn, for the following
	w     int
	keys  *binding // first key of the table
	view  viewID
}

// Name implements view.View.
func (h *help) Name() string { return "Help" }

// Open shows the first rows.
func (h *help) Open() { h.first = 0 }

// Keys implements view.View.
func (h *help) Keys() []view.Key { return nil }

// Scroll implements view.View.
func (h *help) Scroll(by int) { h.first = max(h.first+by, 0) }

// Click implements view.View.
func (h *help) Click(int, int) {}

// Draw draws the help for the view from which it was opened.
func (h *help) Draw(a grid.Area, _ *store.Snapshot, f *pane.Frame) {
	in, of, keys := a.Inset(2, 1), h.app.viewBefore, &h.app.bindings[0]
	if h.w != in.W || h.view != of || h.keys != keys {
		h.w, h.view, h.keys, h.lines = in.W, of, keys, grid.Styled(h.text(in.W, of))
	}
	h.first = max(min(h.first, len(h.lines)-in.H), 0)
	hint := "esc back"
	if h.first+in.H < len(h.lines) {
		hint = "down for more  esc back"
	}
	pane.Dialog(a, "Help", hint, f.Skin.Glyphs)
	in.Lines(h.lines[h.first:])
}

// text returns all rows of the help for a view, w cells wide, in order: the keys of the view and what helps there, then
// the rest.
func (h *help) text(w int, v viewID) string {
	t := helpText{w: w}
	t.heading("Keys")
	inTime, table := false, distinct(h.app.bindings)
	for _, b := range table {
		inTime = inTime || b.time
		if b.views.has(v) {
			t.add(b.names(), "", b.Help)
		}
	}
	if v == viewRequests {
		t.filters()
	}
	t.heading("What each number means")
	for i := range store.Latencies {
		t.add(store.Latencies[i].Title, "s", store.Latencies[i].Help)
	}
	for _, n := range slices.Concat(store.Rates, store.Totalled) {
		if n.Title != "" {
			t.add(n.Title, n.Unit.String(), n.Help)
		}
	}
	for _, n := range glossary {
		t.add(n.name, n.unit, n.meaning)
	}
	for g := range event.NumGauges {
		r := g.Info()
		t.add(r.Title, r.Unit.String(), r.Help)
	}
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
		for _, k := range h.app.history.keys() {
			t.add(strings.Join(k.Keys, " "), "", k.Help)
		}
	}
	return strings.Join(t.rows, "\n")
}

// helpText collects the rows of the help, w cells wide.
type helpText struct {
	w    int
	rows []string
}

func (t *helpText) heading(words string) {
	if len(t.rows) > 0 {
		t.rows = append(t.rows, "")
	}
	t.rows = append(t.rows, theme.Title.Style().Bold(true).Underline(true).Render(words))
}

// add adds a term, its unit or "", and its explanation.
func (t *helpText) add(term, unit, words string) {
	const left = 23
	right := 0
	if unit != "" {
		right = 8
	}
	t.rows = append(t.rows, lipgloss.JoinHorizontal(lipgloss.Top, theme.Accent.Style().Width(left-right).Render(term),
		theme.Dim.Style().Width(right).Render(unit), theme.Text.Style().Width(max(t.w-left, 10)).Render(words)))
}

// filters adds the filter syntax.
func (t *helpText) filters() {
	t.heading("Filters")
	t.add("conditions", "", "separate conditions with spaces: all must match; a leading minus negates one; put text with spaces in double quotes")
	for f := range table.NumFields {
		t.add(f.String(), "", f.Means()+", for example "+f.Example())
	}
	t.add("words", "", strings.Join(table.Flags(), ", ")+"; any other word matches group, label or reason; #7 matches request 7")
}
