package ui

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/table"
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

// helpRow is one row of the help: a heading, or a term with its explanation.
type helpRow struct {
	heading           bool
	term, unit, words string
}

// help collects the rows of the help, with explanations wrapped to w cells.
type help struct {
	w    int
	rows []helpRow
}

func (h *help) heading(words string) {
	if len(h.rows) > 0 {
		h.rows = append(h.rows, helpRow{})
	}
	h.rows = append(h.rows, helpRow{heading: true, words: words})
}

func (h *help) add(term, unit, words string) {
	for i, line := range grid.Wrap(nil, words, max(h.w-24, 10)) {
		if i > 0 {
			term, unit = "", ""
		}
		h.rows = append(h.rows, helpRow{false, term, unit, line})
	}
}

// helpRows returns all rows in order: the keys of the current view and what helps there, then the rest.
func helpRows(w int, keys []binding, v view) []helpRow {
	h := help{w: w}
	h.heading("Keys")
	for _, b := range keys {
		if b.views.has(v) {
			h.add(b.names(), "", b.help)
		}
	}
	if v == viewRequests {
		h.filters()
	}
	h.heading("What each number means")
	for i := range store.Latencies {
		h.add(store.Latencies[i].Title, "s", store.Latencies[i].Help)
	}
	for _, n := range slices.Concat(store.Rates, store.Totalled) {
		if n.Title != "" {
			h.add(n.Title, n.Unit.String(), n.Help)
		}
	}
	for _, n := range glossary {
		h.add(n.name, n.unit, n.meaning)
	}
	for g := range event.NumGauges {
		r := g.Info()
		h.add(r.Title, r.Unit.String(), r.Help)
	}
	h.heading("Keys of other views")
	for _, b := range keys {
		if !b.views.has(v) {
			h.add(b.names(), "", "in "+b.views.names()+": "+b.help)
		}
	}
	if v != viewRequests {
		h.filters()
	}
	if lookup(keys, "[", v) != actFarBack {
		h.heading("Keys while the view is paused")
		for _, b := range historyKeys {
			h.add(b.names(), "", b.help)
		}
	}
	return h.rows
}

// filters adds the filter syntax.
func (h *help) filters() {
	h.heading("Filters")
	h.add("conditions", "", "separate conditions with spaces: all must match; a leading minus negates one; put text with spaces in double quotes")
	for f := range table.NumFields {
		h.add(f.String(), "", f.Means()+", for example "+f.Example())
	}
	h.add("words", "", strings.Join(table.Flags(), ", ")+"; any other word matches group, label or reason; #7 matches request 7")
}

// drawHelp draws the help for a view from row scroll on and returns scroll, limited to the valid range.
func drawHelp(a grid.Area, keys []binding, v view, scroll int, skin *theme.Skin) int {
	gl := skin.Glyphs
	a.Frame(grid.Fg(theme.BorderFocus), gl)
	a.Text(2, 0, grid.Fg(theme.Accent).With(grid.Bold), " Help ")
	in := a.Inset(2, 1)
	rows := helpRows(in.W, keys, v)
	scroll = max(min(scroll, len(rows)-in.H), 0)
	for y, r := range rows[scroll:min(scroll+in.H, len(rows))] {
		if r.heading {
			in.Text(0, y, grid.Fg(theme.Title).With(grid.Bold|grid.Underline), r.words)
			continue
		}
		in.Clip(0, y, 22, grid.Fg(theme.Accent), r.term)
		in.Clip(14, y, 8, grid.Fg(theme.Dim), r.unit)
		in.Text(23, y, grid.Fg(theme.Text), r.words)
	}
	hint := " esc back "
	if scroll+in.H < len(rows) {
		hint = " down for more  esc back "
	}
	a.Right(a.W-2, a.H-1, grid.Fg(theme.Dim), hint)
	return scroll
}
