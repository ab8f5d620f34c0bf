package ui

import (
	"strings"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/table"
)

// numbers are the definitions that the help shows: what each number means, its formula and its unit.
var numbers = []struct{ name, unit, means string }{
	{"TTFT", "s", "time to first token: first token - enqueued"},
	{"cold, warm", "s", "TTFT of the first request, model load included, and of every later one; never averaged together"},
	{"queue", "s", "scheduler time in loop (STIL): dispatched - enqueued"},
	{"tokenize", "s", "turning the prompt's text into token ids"},
	{"embed", "s", "looking up the embeddings of the prompt's tokens"},
	{"prompt", "s", "prefill: the prompt through all layers"},
	{"first", "s", "LM head and sampling of the first token"},
	{"other", "s", "TTFT less all named components; always shown"},
	{"TPOT", "s", "time per output token: (E2EL - TTFT) / (generated - 1), the mean ITL"},
	{"ITL", "s", "inter-token latency: the gap between two consecutive tokens, waiting on purpose (pacing) excluded"},
	{"p50 p95 p99", "s", "percentiles of ITL or TTFT over the window in the title, from a histogram with at most 1/64 error"},
	{"ITL over time", "0..1", "tokens of a second that came after such a gap / all tokens of that second; four steps to an octave, and one column a second"},
	{"outliers", "", "in histograms: the three longest times by the request and token that they belong to; of TTFT beyond its target, of ITL from 3 times the median on"},
	{"stall", "", "a gap of 3 times the request's median or more; the cause is named where the evidence supports one"},
	{"E2EL", "s", "end-to-end latency: finished - enqueued = TTFT + decode time"},
	{"prefill", "tok/s", "computed prompt tokens (cached ones excluded) / prefill time"},
	{"decode", "tok/s", "(generated - 1) / decode time = 1 / TPOT"},
	{"TTPS", "tok/s", "generated tokens of all requests / wall clock, last 10 s"},
	{"TPS", "tok/s", "generated tokens of a group / the latency of its requests"},
	{"busy", "0..1", "share of the last 10 s in which a forward pass ran"},
	{"KV cache", "0..1", "used / total cells; one cell holds one token of one sequence"},
	{"KV held", "s", "residency: how long a request's cells stayed pinned"},
	{"memory", "B/s", "bytes of weights and KV touched per token x decode rate, beside what this machine copies"},
	{"share", "0..1", "picks of one expert / all picks of its layer; the map's scale ends at the hottest expert"},
	{"max/mean", "", "load of a layer's hottest expert / the mean: 1 is even"},
	{"CV, entropy", "", "coefficient of variation of a layer's picks, and their entropy over its maximum: 0 and 1 are even"},
	{"apart", "0..1", "the same between the picks of one kind of prompt and those of all"},
	{"picked together", "", "tokens that picked both experts / all tokens, and how many times as many as if the two were picked independently"},
	{"budget", "0..1", "picks of so many experts, the most picked first, / all picks: the share of routing that stays on a device with room for them"},
	{"idle", "experts", "experts of a layer that were never picked in the window"},
	{"drift", "0..1", "since a mark, per layer: half the sum of the differences of the experts' shares before and since; 0 is the same, 1 no expert in common. Chance: what it is on average if nothing changed"},
	{"operations", "s", "time of a forward pass in each kind of operation and layer: their sum over the passes that were watched / those passes"},
	{"CPU, core", "0..1", "utilisation of the machine and of each core"},
	{"engine", "cores", "CPU time of the engine's process / wall clock"},
	{"rss, peak", "B", "resident memory of the engine's process, and the most it had"},
	{"PSS", "B", "proportional set: resident pages of the engine, each / the processes that share it; measured when i is pressed"},
	{"model cached", "0..1", "bytes of the model's file in the page cache / its size; what is missing must be read from disk"},
	{"minor, major", "1/s", "page faults of the engine: those that found the page in memory, and those that waited for storage"},
	{"read, write", "B/s", "bytes and operations from and to disk by the engine's process"},
	{"received, sent", "B/s", "over all network interfaces of the machine but the loopback"},
	{"run wait", "0..1", "how long runnable threads waited for a core / wall clock"},
	{"switches", "1/s", "context switches of the engine's threads that waited for something (voluntary)"},
	{"preempted", "1/s", "context switches of threads that were made to stop (involuntary)"},
	{"pressure", "0..1", "share of the second in which some task of the machine waited for a core, for memory, for storage (PSI)"},
	{"throttled", "0..1", "share of the second in which the control group was held back, having used up its cores"},
	{"CPU power", "W", "energy of the processors' packages (RAPL) / time; J/token: over the last second's tokens of all requests"},
	{"usual", "", "the median of a gauge over the window; beside it what it was in the second in which the token came"},
	{"ρ ITL", "-1..1", "Spearman's rank correlation of a gauge with the mean ITL, second by second; from 12 seconds with tokens on; a sign, and no proof, of a cause"},
	{"self", "cores", "CPU of llmtop without the engine's threads, and its memory"},
	{"lost", "events", "events that could not be delivered or stored; above 0, numbers are incomplete"},
	{"missing", "events", "events of an engine elsewhere that neither came nor were counted as lost; below 0: more came than were sent"},
	{"garbage", "lines", "lines of an engine elsewhere that could not be understood"},
	{"paced", "tok/s", "the engine waits between tokens on purpose; the waiting counts in no rate or latency"},
	{"not reported", "", "the engine does not tell this number; it is never shown as 0"},
}

// helpRow is one row of the help: a heading, or a term with its explanation.
type helpRow struct {
	heading           bool
	term, unit, words string
}

// help is what the help is made of: rows, with explanations wrapped to w cells.
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

// helpRows are all rows in order: the keys of a view, what helps there, and then the rest.
func helpRows(w int, keys []binding, v view) []helpRow {
	h := help{w: w}
	h.heading("Keys")
	for _, b := range keys {
		if b.in.has(v) {
			h.add(b.names(), "", b.help)
		}
	}
	if v == viewRequests {
		h.filters()
	}
	h.heading("What each number means")
	for _, n := range numbers {
		h.add(n.name, n.unit, n.means)
	}
	h.heading("Keys of other views")
	for _, b := range keys {
		if !b.in.has(v) {
			h.add(b.names(), "", "in "+b.in.names()+": "+b.help)
		}
	}
	if v != viewRequests {
		h.filters()
	}
	if lookup(keys, "[", v) != actFarBack {
		h.heading("Keys while the view is paused")
		for _, b := range travelling {
			h.add(b.names(), "", b.help)
		}
	}
	return h.rows
}

// filters is the language of filters.
func (h *help) filters() {
	h.heading("Filters")
	h.add("conditions", "", "with spaces between them, all of which must hold; a minus before one turns it round; text with spaces goes in double quotes")
	for f := range table.NumFields {
		h.add(f.String(), "", f.Means()+", as in "+f.Example())
	}
	h.add("words", "", strings.Join(table.Flags(), ", ")+"; any other word is looked for in group, label and reason, #7 is request 7")
}

// drawHelp draws the help for a view from row scroll on and returns scroll, clamped.
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
