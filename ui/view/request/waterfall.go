package request

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// stageRow is one row of the waterfall.
type stageRow struct {
	name       string
	role       theme.Role
	fill, mark rune
	dur        int64         // ns
	at         [][2]float64  // intervals on the axis, 0..1
	perToken   float64       // ns per computed prompt token; 0: none
	bytes      event.Reading // that were copied
}

// axis is the time axis of a waterfall.
type axis struct{ from, to event.Time }

// place returns the position of an interval on the axis, clipped to it.
func (x axis) place(from, to event.Time) [2]float64 {
	whole := max(float64(x.to-x.from), 1)
	at := func(t event.Time) float64 { return min(max(float64(t-x.from)/whole, 0), 1) }
	return [2]float64{at(from), at(max(from, to))}
}

// requestAxis returns the time axis of a request, to its first token or to its end. For a cold request it begins with
// the model load, as if the load preceded the request.
func requestAxis(s *store.Snapshot, r *store.Request, whole bool) axis {
	x := axis{r.Enqueued, r.Closed}
	if r.Closed == 0 {
		x.to = max(s.Now, r.Last, r.Enqueued)
	}
	if r.First != 0 && !whole {
		x.to = r.First
	}
	if r.TTFT.OK() && r.First != 0 {
		x.from = min(x.from, r.First-event.Time(math.Round(r.TTFT.V*1e9)))
	}
	x.from -= event.Time(store.LoadBefore(s, r))
	return x
}

// waterfallRows returns the known TTFT components of a request, and the time that no component covers.
func waterfallRows(s *store.Snapshot, f *pane.Frame, r *store.Request, x axis) (rows []stageRow) {
	spans := timeline(r)
	began := r.Began(s.Engine.Caps)
	if r.First != 0 && (r.Dispatched != 0 || began == r.Enqueued) { // parts that are not stamped are what the dispatch leaves before and after it
		spans = fill(spans, event.StageQueue, r.Enqueued, began)
		spans = fill(spans, event.StagePrompt, began, r.First)
	}
	if r.QueueInferred() {
		for _, w := range s.WaitsOf(r) {
			if w.Cause == verdict.Queue {
				spans = append(spans, store.StageSpan{Stage: event.StageQueue, Layer: -1, Start: w.From, End: w.To})
			}
		}
	}
	if load := store.LoadBefore(s, r); load > 0 {
		k := pane.ComponentLook(event.StageLoad)
		rows = append(rows, stageRow{name: k.Name, role: k.Role, fill: pane.PartFill(f, k), mark: pane.PartSwatch(f, k), dur: int64(load), at: [][2]float64{x.place(x.from, r.Enqueued)}})
	}
	for _, p := range ttftParts(s, r) {
		k := pane.ComponentLook(p.Stage)
		row := stageRow{name: k.Name, role: k.Role, fill: pane.PartFill(f, k), mark: pane.PartSwatch(f, k), dur: int64(p.Dur), perToken: p.PerToken}
		if c := r.Calls; c != nil {
			switch p.Stage {
			case event.StageHostToDevice:
				row.bytes = c.To
			case event.StageDeviceToHost:
				row.bytes = c.From
			}
		}
		switch p.Stage {
		case event.StageNone:
			for _, p := range uncovered(spans, r.Enqueued, r.First) {
				row.at = append(row.at, x.place(p.Start, p.End))
			}
		case event.StageLoad:
			row.at = stagesAt(spans, p.Stage, x)
			if x.from < r.Enqueued {
				row.at = append(row.at, x.place(x.from, r.Enqueued))
			}
		case event.StageQueue:
			if row.at = stagesAt(spans, p.Stage, x); len(row.at) == 0 { // not dispatched yet
				row.at = [][2]float64{x.place(r.Enqueued, r.Enqueued+event.Time(p.Dur))}
			}
		default:
			row.at = stagesAt(spans, p.Stage, x)
		}
		rows = append(rows, row)
	}
	return rows
}

// timeline returns the spans of a request, so that none of the queue covers the model load. Its queue time excludes the
// load, but is one span that ends when the request is dispatched: the part before the load belongs before it.
func timeline(r *store.Request) (out []store.StageSpan) {
	for _, p := range r.Spans {
		if p.Stage == event.StageQueue {
			for _, l := range r.Spans {
				if l.Stage == event.StageLoad && l.Start < p.End && p.Start < l.End {
					before := p
					before.Start, before.End = max(p.Start-event.Time(l.Dur()), r.Enqueued), l.Start
					if p.Start = l.End; before.Start < before.End {
						out = append(out, before)
					}
				}
			}
		}
		out = append(out, p)
	}
	return out
}

// ttftParts returns the components of TTFT; without a first token, those reported so far.
func ttftParts(s *store.Snapshot, r *store.Request) []store.Part {
	if len(r.Parts) > 0 {
		return r.Parts
	}
	var sum [event.NumStages]time.Duration
	for _, p := range r.Spans {
		sum[p.Stage] += p.Dur()
	}
	switch {
	case r.STIL.OK():
		sum[event.StageQueue] = time.Duration(math.Round(r.STIL.V * 1e9))
	case !r.MissedStart && s.Engine.Caps.Has(event.CapQueue):
		until := s.Now
		if r.Closed != 0 {
			until = r.Closed
		}
		sum[event.StageQueue] = time.Duration(max(until-r.Enqueued, 0))
	}
	var out []store.Part
	for _, st := range event.Components() {
		if sum[st] > 0 {
			out = append(out, store.Part{Stage: st, Dur: sum[st]})
		}
	}
	return out
}

// stagesAt returns the positions of the spans of a stage.
func stagesAt(spans []store.StageSpan, st event.Stage, x axis) (out [][2]float64) {
	for _, p := range spans {
		if p.Stage == st && p.Start < p.End {
			out = append(out, x.place(p.Start, p.End))
		}
	}
	return out
}

// fill adds what no component covers between two moments as spans of a stage, unless it has spans.
func fill(spans []store.StageSpan, stage event.Stage, from, to event.Time) []store.StageSpan {
	if slices.ContainsFunc(spans, func(p store.StageSpan) bool { return p.Stage == stage }) {
		return spans
	}
	for _, p := range uncovered(spans, from, to) {
		p.Stage = stage
		spans = append(spans, p)
	}
	return spans
}

// uncovered returns the intervals between two moments that no component covers.
func uncovered(spans []store.StageSpan, from, to event.Time) (out []store.StageSpan) {
	for at := from; at < to; {
		next, end := to, at
		for _, p := range spans {
			if p.Stage == event.StageNone || p.Stage > event.StageSend {
				continue
			}
			switch {
			case p.Start <= at && p.End > at:
				end = max(end, p.End)
			case p.Start > at:
				next = min(next, p.Start)
			}
		}
		if end == at {
			out = append(out, store.StageSpan{Start: at, End: next})
			end = next
		}
		at = end
	}
	return out
}

// engineStageRows returns engine-specific stages. Their time is part of the uncovered time.
func engineStageRows(f *pane.Frame, r *store.Request, x axis) (rows []stageRow) {
	for _, p := range r.Spans {
		if p.Stage != event.StageNone {
			continue
		}
		name := sanitize.Line(p.Name)
		i := 0
		for i < len(rows) && rows[i].name != name {
			i++
		}
		if i == len(rows) {
			rows = append(rows, stageRow{name: name, role: theme.Accent, fill: f.Skin.Glyphs.Bar, mark: f.Skin.Glyphs.Bullet})
		}
		rows[i].dur += int64(p.Dur())
		rows[i].at = append(rows[i].at, x.place(p.Start, p.End))
	}
	return rows
}

// Column widths of the waterfall; the bars take the rest.
const (
	stageNames = 14
	stageTime  = 11
	stageShare = 6
	stageToken = 13
)

// waterfall draws the stages on one axis, with their lengths and the sum, and returns the rows used.
func waterfall(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) int {
	r := v.Request
	x := requestAxis(s, r, v.ToEnd)
	waterfallTitle(a, f, v, x)
	rows := fold(waterfallRows(s, f, r, x), a.H-2)
	total := int64(0)
	right, token := stageTime+stageShare, 0
	if a.W >= 64 {
		token = stageToken
	}
	bars := a.Sub(stageNames, 1, a.W-stageNames-right-token, a.H)
	y := 0
	for _, p := range rows {
		total += p.dur
		drawStageRow(a.Sub(0, 1+y, a.W, 1), bars.Sub(0, y, bars.W, 1), f, p)
		if ttft := r.TTFT.V * 1e9; r.TTFT.OK() && ttft > 0 {
			a.Right(stageNames+bars.W+right, 1+y, pane.Plain, metric.Percent(float64(p.dur)/ttft))
		}
		if token > 0 && p.bytes.OK() {
			a.Right(a.W, 1+y, pane.Dim, metric.Bytes(p.bytes.V))
		} else if token > 0 && p.perToken > 0 {
			a.Right(a.W, 1+y, pane.Dim, metric.Duration(int64(p.perToken))+"/tok")
		}
		y++
	}
	y = waterfallSums(a, bars, f, v, x, y, metric.Duration(total))
	engine := engineStageRows(f, r, x)
	for _, p := range engine {
		drawStageRow(a.Sub(0, 1+y, a.W, 1), bars.Sub(0, y, bars.W, 1), f, p)
		y++
	}
	if len(rows)+len(engine) > 0 || r.First != 0 {
		drawTimeAxis(bars.Sub(0, y, bars.W, 1), float64(x.to-x.from))
	}
	if y+2 < a.H && DrawWaits(a.Sub(0, 2+y, a.W, 1), f, s.WaitsOf(r)) {
		y++
	}
	if y+2 < a.H {
		y += drawCacheMiss(a.Sub(0, 2+y, a.W, min(a.H-y-2, 2)), f, r.CacheMiss())
	}
	return min(y+2, a.H)
}

// drawCacheMiss writes why a prompt cache did not keep what it could have: "Cache miss  a timestamp differs since #57 ·
// 212 tokens 120 ms", and below it the place "messages[0].content, character 130". It returns the rows used, 0 if nothing
// was missed.
func drawCacheMiss(a grid.Area, f *pane.Frame, m store.CacheMiss) int {
	if m.Tokens == 0 {
		return 0
	}
	l := a.Line(0, 0)
	sep := " " + string(f.Skin.Glyphs.Bullet) + " "
	l.Put(pane.Heading, "Cache miss").Gap(2)
	l.Fit(grid.Piece{Style: pane.Plain, Words: m.Words()}, grid.Piece{Style: pane.Dim, Words: " since "}, grid.Piece{Style: pane.Data, Words: "#" + strconv.Itoa(int(m.With))})
	lost := metric.Count(float64(m.Tokens)) + " tokens"
	if m.Lost > 0 {
		lost += " " + metric.Duration(int64(m.Lost))
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: sep}, grid.Piece{Style: pane.Loud, Words: lost})
	if m.Place == "" || a.H < 2 {
		return 1
	}
	const indent = len("Cache miss") + 2
	below := a.Line(indent, 1)
	below.Fit(grid.Piece{Style: pane.Plain, Words: sanitize.Line(m.Where())})
	return 2
}

// leastWait is the share of a wait from which its part is shown.
const leastWait = 0.01

// DrawWaits writes what held a request up before its first token: "held up by slot of #12 3.10 s · #14's prompt 400 ms".
// It draws nothing and returns false if no part of the wait is explained.
func DrawWaits(a grid.Area, f *pane.Frame, ws []store.Wait) bool {
	all, explained := int64(0), false
	for i := range ws {
		all += ws[i].NS
		explained = explained || ws[i].Cause != verdict.Unknown
	}
	if !explained {
		return false
	}
	l := a.Line(0, 0)
	l.Put(pane.Heading, "Held up by").Gap(2)
	for i := range ws {
		w := &ws[i]
		if float64(w.NS) < leastWait*float64(all) {
			continue
		}
		lead := ""
		if i > 0 {
			lead = " " + string(f.Skin.Glyphs.Bullet) + " "
		}
		st := pane.Plain
		if w.Cause == verdict.Unknown {
			st = pane.Dim
		}
		if !l.Fit(grid.Piece{Style: pane.Dim, Words: lead}, grid.Piece{Style: st, Words: w.Words() + " "}, grid.Piece{Style: pane.Data, Words: metric.Duration(w.NS)}) {
			break
		}
	}
	return true
}

// fold merges the shortest rows into one if there are more than n.
func fold(rows []stageRow, n int) []stageRow {
	own, name := pane.Unfolded(len(rows), func(i int) int64 { return rows[i].dur }, max(n, 1))
	rest := stageRow{name: name, role: theme.PartOther, fill: ' ', mark: ' '}
	var out []stageRow
	for i, p := range rows {
		if own[i] {
			out = append(out, p)
			continue
		}
		rest.dur += p.dur
		rest.perToken += p.perToken
	}
	if name != "" {
		out = append(out, rest)
	}
	return out
}

// waterfallTitle writes what the axis covers.
func waterfallTitle(a grid.Area, f *pane.Frame, v *View, x axis) {
	l := a.Line(0, 0)
	l.Put(pane.Heading, "Stages").Gap(2)
	if v.Request.Polled {
		l.Put(pane.Dim, "polled from a slot: progress only, no timestamps")
		return
	}
	covers := "enqueued to first token"
	switch r := v.Request; {
	case r.MissedStart && !v.ToEnd && r.First != 0:
		l.Put(pane.Dim, "its start was not seen")
		return
	case r.First == 0 && !r.State.Final():
		covers = "enqueued to now"
	case v.ToEnd || r.First == 0:
		covers = "enqueued to the end"
	}
	if v.Request.Cold && x.from < v.Request.Enqueued {
		covers = "model load, then " + covers
	}
	l.Put(pane.Dim, covers+", "+metric.Duration(int64(x.to-x.from)))
	switch r := v.Request; {
	case r.First == 0 || v.Static:
	case v.ToEnd:
		l.Fit(grid.Piece{Style: pane.Dim, Words: "  (x: to the first token)"})
	default:
		l.Fit(grid.Piece{Style: pane.Dim, Words: "  (x: to the end)"})
	}
}

// drawStageRow draws one stage: its name, its position and its length.
func drawStageRow(a, bar grid.Area, f *pane.Frame, p stageRow) {
	a.Cell(0, 0, grid.Fg(p.role), p.mark)
	a.Elide(2, 0, stageNames-3, pane.Dim, p.name, f.Skin.Glyphs.Ellipsis)
	drawSpans(bar, f, p.at, grid.Fg(p.role), p.fill)
	a.Right(stageNames+bar.W+stageTime, 0, pane.Data, metric.Duration(p.dur))
}

// drawSpans draws intervals of an axis, each at least one cell wide.
func drawSpans(bar grid.Area, f *pane.Frame, at [][2]float64, st grid.Style, fill rune) {
	for _, p := range at {
		from := min(int(math.Round(p[0]*float64(bar.W))), bar.W-1)
		to := int(math.Round(p[1] * float64(bar.W)))
		bar.Fill(from, 0, max(to-from, 1), st, fill)
	}
}
