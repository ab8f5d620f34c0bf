package latency

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// drawSlots draws the models in memory, of an engine that loads them by itself, and the busy slots: prompt tokens
// processed and tokens generated.
func drawSlots(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	const leastSlots = 2 // rows kept for busy slots
	slots := slices.DeleteFunc(slices.Clone(s.Aggregates.Slots), func(v event.Slot) bool { return v.Request == 0 })
	y := drawModels(a.Sub(0, 0, a.W, a.H-1-min(len(slots), leastSlots)), s, f)
	note := noTTFT
	switch n := len(s.Aggregates.Slots); {
	case len(slots) > 0:
		note = pane.FirstFitting(a.W, "slots at the last poll; TTFT is not reported by this engine", "slots; TTFT not reported")
	case n > 0 && y > 0:
		note = pane.FirstFitting(a.W, "all slots idle; "+noTTFT, "all slots idle; TTFT not reported")
	case n == 1:
		f.Absent(a, pane.Dim, "1 slot, idle", noTTFT)
		return
	case n > 0:
		f.Absent(a, pane.Dim, metric.Plural(n, "slot")+", all idle", noTTFT)
		return
	}
	if y > 0 && y+1+len(slots) < a.H {
		y++ // an empty row
	}
	for i := range slots[:min(len(slots), a.H-1-y)] {
		drawSlot(a.Sub(0, y+i, a.W, 1), s, f, &slots[i])
	}
	if len(slots) > 0 {
		y = a.H - 1
	}
	a.Elide(0, min(y, a.H-1), a.W, pane.Dim, note, f.Skin.Glyphs.Ellipsis)
}

// drawModels lists the models in memory and returns the rows used.
func drawModels(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	models := s.Aggregates.Models
	if len(models) == 0 || a.H < 2 {
		return 0
	}
	heads, cols := [...]string{"size", "processor", "unload in"}, [...]int{10, 11, 11}
	if a.W < 56 {
		heads, cols = [...]string{"size", "on", "unload"}, [...]int{8, 9, 7}
	}
	names := min(40, a.W-cols[0]-cols[1]-cols[2])
	row := func(y int, st grid.Style, cells [3]string) {
		x := names
		for k, words := range cells {
			x += cols[k]
			a.Right(x, y, st, words)
		}
	}
	a.Text(0, 0, pane.Heading, "in memory")
	row(0, pane.Heading, heads)
	n := len(models)
	if n > a.H-1 {
		n = a.H - 2 // and a row for the others
	}
	for i := range models[:n] {
		m := &models[i]
		a.Elide(0, i+1, names-1, pane.Plain, sanitize.Line(m.Name), f.Skin.Glyphs.Ellipsis)
		row(i+1, pane.Data, [...]string{size(*m), processor(m), unload(m, s.Now)})
	}
	switch {
	case n == len(models):
		return n + 1
	case n == 0:
		a.Clip(0, 1, names, pane.Plain, strconv.Itoa(len(models))+" models")
	default:
		a.Clip(0, n+1, names, pane.Dim, strconv.Itoa(len(models)-n)+" more")
	}
	row(n+1, pane.Data, [...]string{size(models[n:]...), "", ""})
	return n + 2
}

// size returns the memory of models, or "-" if that of one is unknown.
func size(models ...event.LoadedModel) string {
	sum := 0.0
	for i := range models {
		if models[i].Bytes <= 0 {
			return "-"
		}
		sum += float64(models[i].Bytes)
	}
	return metric.Bytes(sum)
}

// processor names what runs a model: "CPU", "GPU", or the share of it that a GPU holds.
func processor(m *event.LoadedModel) string {
	switch share := m.GPUShare(); {
	case !share.OK():
		return "-"
	case share.V == 0:
		return "CPU"
	case share.V == 1:
		return "GPU"
	default:
		return metric.Percent(share.V) + " GPU"
	}
}

// unload returns in how long a model is unloaded.
func unload(m *event.LoadedModel, now event.Time) string {
	switch {
	case m.Stays:
		return "never"
	case m.Until > now:
		return metric.Duration(int64(m.Until-now) / 1e9 * 1e9)
	}
	return "-"
}

func drawSlot(a grid.Area, s *store.Snapshot, f *pane.Frame, v *event.Slot) {
	a.Text(0, 0, pane.Plain, "#"+strconv.Itoa(int(v.Request)))
	label, bar := "slot "+strconv.Itoa(v.Slot), 15
	if v.Model != "" && len(s.Aggregates.Models) > 1 {
		label, bar = sanitize.Line(v.Model), min(max(a.W*2/5, bar), 32)
	}
	words := strconv.Itoa(v.Generated) + " tokens"
	if v.Generated == 0 {
		words = "prompt " + strconv.Itoa(v.Processed) + "/" + strconv.Itoa(v.Prompt)
		if v.Prompt == 0 {
			words = "prompt " + strconv.Itoa(v.Processed) + " so far"
		}
	}
	for _, r := range s.Requests {
		if r.ID == v.Request && r.DecodeRate.OK() {
			words += "  " + metric.Rate(r.DecodeRate.V) + " tok/s"
		}
	}
	x := a.Right(a.W, 0, pane.Data, words)
	a.Elide(6, 0, min(bar, x)-7, pane.Dim, label, f.Skin.Glyphs.Ellipsis)
	cells := a.Sub(bar, 0, x-bar-1, 1)
	whole := float64(max(v.Context, v.Prompt+v.Generated, 1))
	gl := f.Skin.Glyphs
	rest := max(v.Processed-v.Cached, 0)
	cells.Stack(0, 0, cells.W, []grid.Seg{
		{Share: float64(v.Cached) / whole, Role: theme.PartOther, Fill: gl.Fills[pane.ComponentLook(event.StageNone).Fill]},
		{Share: float64(rest) / whole, Role: theme.SeriesPrefill, Fill: gl.Fills[pane.ComponentLook(event.StagePrompt).Fill]},
		{Share: float64(v.Generated) / whole, Role: theme.SeriesDecode, Fill: gl.Fills[pane.ComponentLook(event.StageFirst).Fill]},
	}, f.Skin.Colour(), gl)
}

// slotsOf returns the requests that were polled from slots, newest first.
func slotsOf(s *store.Snapshot) (out []*store.Request) {
	for _, r := range s.Requests {
		if r.Polled {
			out = append(out, r)
		}
	}
	return out
}

// slotColumns returns the columns of requests that were polled from slots. Their TPOT is the time between two polls divided
// by the tokens between them.
func slotColumns(s *store.Snapshot) []ttftColumn {
	style := func(r *store.Request) grid.Style {
		if r.State.Final() {
			return pane.Dim
		}
		return pane.Plain
	}
	cols := []ttftColumn{
		{"TPOT", 9, readingCell(func(r *store.Request) event.Reading { return r.TPOT }, metric.Seconds, pane.Data)},
		{"decode/s", 9, readingCell(func(r *store.Request) event.Reading { return r.DecodeRate }, metric.Rate, pane.Data)},
		{"gen", 8, countCell(table.Generated, style)},
		{"prompt", 8, countCell(table.Prompt, style)},
		{"cached", 8, countCell(table.Cached, style)},
		{"slot", 5, func(r *store.Request) (string, grid.Style) { return strconv.Itoa(r.Slot), style(r) }},
	}
	if len(s.Aggregates.Models) > 1 {
		cols = append(cols, ttftColumn{"model", 0, func(r *store.Request) (string, grid.Style) {
			return sanitize.Line(r.Model), pane.Dim
		}})
	}
	return cols
}

// slotRequests lists polled requests in the upper half of an area and returns the rows used, 0 without any.
func slotRequests(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	list := slotsOf(s)
	n := min(len(list)+1, a.H/2)
	if n < 2 {
		return 0
	}
	drawRequestTable(a.Sub(0, 0, a.W, n), slotColumns(s), list, 0)
	a.Elide(0, n+1, a.W, pane.Dim, "from slot progress between two polls, newest first", f.Skin.Glyphs.Ellipsis)
	a.Elide(0, n+2, a.W, pane.Dim, pane.FirstFitting(a.W,
		"percentiles and other latencies are not reported, as "+store.MissedByPolls+": "+measureThem(s),
		"percentiles and other latencies are not reported: "+measureThem(s), measureThem(s)), f.Skin.Glyphs.Ellipsis)
	return n + 4
}
