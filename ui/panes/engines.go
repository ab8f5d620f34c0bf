package panes

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// EngineRow is one engine of the list.
type EngineRow struct {
	Name     string // sanitised
	Snapshot *store.Snapshot
	Shown    bool // it is the one that the other views show
}

// NotKept stands for an engine at a moment of the past of which nothing is kept any more, or not yet.
var NotKept = &store.Snapshot{Engine: event.Engine{Caps: event.CapReports}}

// Ordinal is the i-th, from 0 on, of n.
func Ordinal(i, n int) string { return itoa(i+1) + "/" + itoa(n) }

// engineColumns are the numbers of the list, right-aligned.
var engineColumns = []struct {
	name   string
	width  int
	cell   func(*store.Snapshot, *Ctx) event.Reading
	format func(float64) string
	sums   bool
	alarm  bool                               // it should be 0, and is summed over all engines
	edge   func(*store.Snapshot, *Ctx) string // what to say of a number of which only a bound is known; nil: nothing
}{
	{"decode/s", 8, func(s *store.Snapshot, _ *Ctx) event.Reading { return s.Throughput.Decode }, metric.Rate, true, false, nil},
	{"prefill/s", 10, func(s *store.Snapshot, _ *Ctx) event.Reading { return s.Throughput.Prefill }, metric.Rate, true, false, nil},
	{"run", 4, func(s *store.Snapshot, _ *Ctx) event.Reading { return runningOf(s) }, metric.Count, true, false, nil},
	{"queue", 6, func(s *store.Snapshot, _ *Ctx) event.Reading { return queuedOf(s) }, metric.Count, true, false, nil},
	{"TTFT p50", 9, ttftMedian, metric.Seconds, false, false, ttftEdge},
	{"lost", 6, func(s *store.Snapshot, _ *Ctx) event.Reading { return event.From(float64(s.Lost.Total())) }, metric.Count, true, true, nil},
}

func ttftMedian(s *store.Snapshot, c *Ctx) event.Reading {
	if sum := s.Latency.TTFT[c.Window]; sum.Count > 0 {
		return event.From(float64(sum.P50) / 1e9)
	}
	if s.Reported != nil {
		sum := s.Reported.Over(event.TimesTTFT, c.Window)
		switch {
		case sum == nil:
			return event.Absent(event.NotReported)
		case sum.P50.Edge == metric.Within:
			return event.From(float64(sum.P50.At) / 1e9)
		}
		return event.Absent(event.NotYet)
	}
	if !s.Engine.Caps.Has(event.CapTokens) {
		return event.Absent(event.NotReported)
	}
	return event.Absent(event.NotYet)
}

// ttftEdge is the median where only the end of a bucket is known beyond which it lies: "<100 ms"; "" anywhere else.
func ttftEdge(s *store.Snapshot, c *Ctx) string {
	if s.Latency.TTFT[c.Window].Count > 0 || s.Reported == nil {
		return ""
	}
	if sum := s.Reported.Over(event.TimesTTFT, c.Window); sum != nil && (sum.P50.Edge == metric.Below || sum.P50.Edge == metric.Above) {
		return metric.QuantileOf(sum.P50)
	}
	return ""
}

// numbersWidth is what engineColumns take, stateColumn and modelColumn the two columns before them.
const (
	numbersWidth = 43
	stateColumn  = 16
	modelColumn  = 25
	leastName    = 14
)

// EnginesHeader draws the top row of the list: how many engines there are, and how many are not connected.
func EnginesHeader(a grid.Area, rows []EngineRow, c *Ctx) {
	l := c.brand(a)
	if c.Replay != nil {
		c.replayState(&l)
	}
	words := " engines"
	if len(rows) == 1 {
		words = " engine"
	}
	l.Put(loud, itoa(len(rows))+words).Gap(2)
	counts := map[string]int{}
	if c.Behind > 0 {
		l.Put(watch, "looking back: "+itoa(len(rows)-c.Behind)+" of "+itoa(len(rows))).Gap(2)
	}
	for _, r := range rows {
		if r.Snapshot == NotKept && c.Behind == 0 {
			counts[notKept]++
		}
		if _, _, _, broken := c.link(r.Snapshot); broken {
			counts[linkWord(r.Snapshot)]++
		}
	}
	for _, p := range []struct {
		word string
		st   grid.Style
	}{{"STALE", watch}, {"DISCONNECTED", bad}, {"REFUSED", bad}, {notKept, watch}} {
		if n := counts[p.word]; n > 0 {
			l.Put(p.st.With(grid.Bold), itoa(n)+" "+p.word).Gap(2)
		}
	}
	if words, _ := c.firing(); words != "" && grid.Width(words) <= l.Room() {
		l.Put(bad.With(grid.Bold), words).Gap(2)
	}
	if w := grid.Width(c.Record.Words); w > 0 && w+1 <= l.Room() {
		a.Right(a.W-1, 0, c.Record.style(), c.Record.Words)
	}
	a.Paint(8, 0, a.W-8, theme.Select, 0)
}

// linkWord is the state of a connection that is not what it should be.
func linkWord(s *store.Snapshot) string { return strings.ToUpper(s.Engine.Remote.Link.String()) }

// EnginesAt is where the engines of the list are on the screen: that of First is in the upper row.
type EnginesAt struct {
	At    grid.Rect
	First int
}

// Row is the engine at a place of the screen, -1 if there is none.
func (e EnginesAt) Row(x, y int) int {
	if !e.At.Has(x, y) {
		return -1
	}
	return e.First + y - e.At.Y
}

// Engines draws the list, one row an engine, with their sums and what else there is to say of the one that is selected. first is the
// engine in the upper row before; it returns where they are now.
func Engines(a grid.Area, rows []EngineRow, selected, first int, c *Ctx) EnginesAt {
	gl := c.Skin.Glyphs
	a.Frame(grid.Fg(theme.BorderFocus), gl)
	a.Text(2, 0, grid.Fg(theme.Accent).With(grid.Bold), " Engines ")
	c.foot(a, dim, "TTFT over "+c.Window.String()+"  n/r not reported")
	in := a.Inset(2, 1)
	if len(rows) == 0 {
		c.absent(in, dim, "no engine yet", "engines appear here as soon as they are found")
		return EnginesAt{}
	}
	c.engineHead(in)
	detail := min(6, max(in.H-8, 0))
	if len(rows) > 0 && tellsInSum(rows[min(selected, len(rows)-1)].Snapshot) {
		detail = min(12, max(in.H-8, 0))
	}
	room := max(in.H-3-detail, 1) // rows of engines: less the head, the rule and the sums
	first = max(min(first, selected, len(rows)-room), selected-room+1, 0)
	shown := rows[first:min(first+room, len(rows))]
	for i, r := range shown {
		c.engineRow(in, 1+i, r, first+i == selected)
	}
	y := 1 + len(shown)
	in.Fill(0, y, in.W, grid.Fg(theme.Border), gl.Horizontal)
	c.engineSums(in, y+1, rows)
	if len(shown) < len(rows) {
		in.Right(in.W, y, dim, " "+itoa(first+1)+" to "+itoa(first+len(shown))+" of "+itoa(len(rows))+" ")
	}
	if detail > 0 {
		c.engineDetail(in.Sub(0, in.H-detail+1, in.W, detail-1), rows[selected])
	}
	return EnginesAt{grid.Rect{X: in.X, Y: in.Y + 1, W: in.W, H: len(shown)}, first}
}

// nameColumns are the widths of the columns of words; model 0: there is none.
func nameColumns(w int) (name, state, model int) {
	left := w - 2 - numbersWidth
	if left >= leastName+stateColumn+modelColumn {
		return left - stateColumn - modelColumn, stateColumn, modelColumn
	}
	return max(left-stateColumn, 0), min(stateColumn, max(left, 0)), 0
}

func (c *Ctx) engineHead(a grid.Area) {
	name, state, model := nameColumns(a.W)
	a.Clip(2, 0, name, dim, "engine")
	a.Clip(2+name, 0, state, dim, "state")
	a.Clip(2+name+state, 0, model, dim, "model")
	x := 2 + name + state + model
	for _, col := range engineColumns {
		x += col.width
		a.Right(x, 0, dim, col.name)
	}
}

func (c *Ctx) engineRow(a grid.Area, y int, r EngineRow, selected bool) {
	s, gl := r.Snapshot, c.Skin.Glyphs
	name, state, model := nameColumns(a.W)
	mark, word, st := c.engineState(s)
	m, _, alarm, broken := c.link(s)
	if broken {
		mark, word, st = m, linkWord(s), alarm
	}
	if selected {
		a.Cell(0, y, grid.Fg(theme.Accent).With(grid.Bold), gl.Arrow)
	}
	use := data
	if r.Shown {
		use = loud
	}
	a.Clip(2, y, name-1, use, fitName(r.Name, name-1, gl.Ellipsis))
	a.Clip(2+name, y, min(state, 1), st, string(mark))
	a.Clip(2+name+2, y, state-3, st, word)
	a.Elide(2+name+state, y, model-1, text, modelName(s), gl.Ellipsis)
	x := 2 + name + state + model
	columns := engineColumns
	if why, _, down := c.trouble(s); down && s.Reported == nil && s.Engine.Caps.Has(event.CapReports) { // it has never told anything
		a.Elide(x+1, y, a.W-x-1, dim, "since "+timeOf(s, s.Engine.Remote.Since)+": "+why, gl.Ellipsis)
		columns = nil
	}
	for _, col := range columns {
		x += col.width
		words, st := cellOf(col.cell(s, c), col.format)
		if col.edge != nil {
			if bound := col.edge(s, c); bound != "" {
				words, st = bound, data
			}
		}
		switch {
		case s == NotKept:
			words, st = "-", dim
		case col.alarm && words != "0":
			st = bad.With(grid.Bold)
		case broken: // it was so when something came last
			st = dim
		}
		a.Right(x, y, st, words)
	}
	if selected {
		attr := grid.Attr(0)
		if !c.Skin.Colour() {
			attr = grid.Reverse
		}
		a.Paint(0, y, a.W, theme.Select, attr)
	}
}

// cellOf writes a reading in a narrow column.
func cellOf(r event.Reading, format func(float64) string) (string, grid.Style) {
	switch {
	case r.OK():
		return format(r.V), data
	case r.Origin == event.NotReported:
		return "n/r", dim
	}
	return "-", dim
}

// modelName is the model with its size and quantisation.
func modelName(s *store.Snapshot) string {
	m := &s.Model
	words := sanitize.Line(m.Name)
	if m.Quantisation != "" {
		words += " " + sanitize.Line(m.Quantisation)
	}
	return words
}

// engineSums adds up what can be added: of engines that are not connected only what they have lost. Percentiles have no sum.
func (c *Ctx) engineSums(a grid.Area, y int, rows []EngineRow) {
	name, state, model := nameColumns(a.W)
	connected := 0
	for _, r := range rows {
		if _, _, _, broken := c.link(r.Snapshot); !broken {
			connected++
		}
	}
	words := "sum"
	if connected < len(rows) {
		words += " of " + itoa(connected) + " connected"
	}
	a.Clip(2, y, name+state+model, dim, words)
	x := 2 + name + state + model
	for _, col := range engineColumns {
		x += col.width
		if col.sums {
			words, st := cellOf(c.sum(rows, col.cell, col.alarm), col.format)
			if col.alarm && words != "0" {
				st = bad
			}
			a.Right(x, y, st.With(grid.Bold), words)
		}
	}
}

// sum adds up what engines report, of all or of those that are connected.
func (c *Ctx) sum(rows []EngineRow, of func(*store.Snapshot, *Ctx) event.Reading, all bool) event.Reading {
	out := event.Absent(event.NotReported)
	for _, r := range rows {
		v := of(r.Snapshot, c)
		_, _, _, broken := c.link(r.Snapshot)
		switch {
		case broken && !all:
		case v.OK():
			out = event.From(out.V + v.V)
		case !out.OK() && v.Origin > out.Origin:
			out = v
		}
	}
	return out
}

// engineDetail says of one engine what there is no room for in its row.
func (c *Ctx) engineDetail(a grid.Area, r EngineRow) {
	s, gl := r.Snapshot, c.Skin.Glyphs
	e := &s.Engine
	words := sanitize.Line(e.Name)
	for _, more := range []string{sanitize.Line(e.Version), sanitize.Line(e.Device.Name), modelName(s)} {
		if more != "" {
			words += " " + string(gl.Bullet) + " " + more
		}
	}
	a.Elide(0, 0, a.W, text, words, gl.Ellipsis)
	loss, whole := c.losses(s)
	l := a.Line(0, 1)
	if whole {
		l.Put(dim, loss)
	} else {
		l.Put(bad, loss)
	}
	if e.Remote.Restarts > 0 {
		l.Gap(2).Put(watch, "RESTARTED ("+itoa(e.Remote.Restarts)+")")
	}
	y := 2
	for _, n := range c.linkNotes(s) {
		for _, line := range grid.Wrap(nil, n, a.W) {
			a.Text(0, y, bad, line)
			y++
		}
	}
	if e.State == event.EngineStarting && e.Remote.Link == event.LinkDisconnected {
		return // what it is was never found out
	}
	rest := a.Sub(0, y, a.W, a.H-y)
	if s.Reported != nil {
		counterRow(rest, c.capabilityRow(rest, s), s)
		return
	}
	counterRow(rest, c.engineCaps(rest, e.Caps), s)
}

// capNames are what an engine may be able to tell, and what it may be asked for, in words.
var capNames = [...]struct {
	caps event.Caps
	name string
}{
	{event.CapStages, "stages"},
	{event.CapTokens, "tokens"},
	{event.CapText, "text"},
	{event.CapExperts, "experts"},
	{event.CapPicks, "picks"},
	{event.CapKV, "KV"},
	{event.CapSteps, "passes"},
	{event.CapQueue, "queue"},
	{event.CapDevice, "device"},
	{event.CapHost, "host"},
	{event.CapCounters, "counters"},
	{event.CapPrompt, "takes prompts"},
	{event.CapCancel, "cancels"},
	{event.CapPause, "pauses"},
	{event.CapHooks, "hooks"},
	{event.CapSample, "samples"},
}

// engineCaps lists what an engine tells, each with a mark for yes or no, in as many rows as that takes, and returns the row below them.
func (c *Ctx) engineCaps(a grid.Area, caps event.Caps) int {
	gl := c.Skin.Glyphs
	l := a.Line(0, 0)
	for _, k := range capNames {
		mark, st, name := gl.Yes, good, text
		if !caps.Has(k.caps) {
			mark, st, name = gl.No, dim, dim
		}
		if grid.Width(k.name)+2 > l.Room() {
			l = a.Line(0, l.Y+1)
		}
		l.Rune(st, mark).Gap(1).Put(name, k.name).Gap(2)
	}
	return l.Y + 1
}
