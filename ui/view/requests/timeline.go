package requests

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/request"
)

// timeAxis maps times to the columns of the timeline.
type timeAxis struct {
	from, to event.Time
	w        int
}

// timelineOf returns the axis of a window that ends with the snapshot: of the session at most its last hour.
func timelineOf(s *store.Snapshot, w metric.Window, columns int) timeAxis {
	span := cmp.Or(w.Span(), time.Hour)
	return timeAxis{max(s.Now-event.Time(span), min(s.Started, s.Now-1)), s.Now, max(columns, 1)}
}

// column returns the column of a moment, which may be outside.
func (x timeAxis) column(t event.Time) int {
	return int(float64(t-x.from) / float64(x.to-x.from) * float64(x.w))
}

// columns yields each column that an interval touches from the start of the axis on, and its ns in it.
func (x timeAxis) columns(from, to event.Time) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		of := float64(x.to-x.from) / float64(x.w) // ns in a column
		for from := max(from, x.from); from < to; {
			at := x.column(from)
			end := min(to, max(x.from+event.Time(float64(at+1)*of), from+1))
			if !yield(at, float64(end-from)) {
				return
			}
			from = end
		}
	}
}

// part is an interval of a request on the timeline.
type part struct {
	r        *store.Request
	from, to event.Time
}

// lanes places intervals so that none overlaps another of its lane by more than a column: the times of two requests may
// come from two clocks.
func lanes(parts []part, x timeAxis) (out [][]part) {
	column := (x.to - x.from) / event.Time(x.w)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.from, b.from) })
	for _, p := range parts {
		i := slices.IndexFunc(out, func(lane []part) bool { return lane[len(lane)-1].to <= p.from+column })
		if i < 0 {
			out, i = append(out, nil), len(out)
		}
		out[i] = append(out[i], p)
	}
	return out
}

// timelineParts returns the times in which requests of the axis ran, and in which they were in the queue: waits within a
// column are left out.
func timelineParts(s *store.Snapshot, x timeAxis) (ran, queued []part) {
	for _, list := range [...][]*store.Request{s.Requests, s.Earlier} {
		for _, r := range list {
			end := cmp.Or(r.Closed, x.to)
			if r.MissedStart || r.Polled || end <= x.from || r.Enqueued >= x.to {
				continue
			}
			begin := r.Began(s.Engine.Caps)
			if begin == 0 && !s.Engine.Caps.Has(event.CapQueue) {
				begin = r.First // when it began is not reported, or not yet
			}
			if wait := cmp.Or(begin, end); x.column(wait) > x.column(r.Enqueued) && wait > x.from {
				queued = append(queued, part{r, r.Enqueued, wait})
			}
			if begin != 0 && end > begin {
				ran = append(ran, part{r, begin, end})
			}
		}
	}
	return ran, queued
}

// loads are the rows below the lanes and the batch size: what all requests together did, second by second.
var loads = [...]struct {
	name string
	role theme.Role
	at   func(*store.RatePoint) float64
	text func(float64) string
}{
	{"prefill", theme.SeriesPrefill, func(p *store.RatePoint) float64 { return pane.RateOrGap(p, p.Prefill) }, metric.Count},
	{"KV", theme.SeriesP50, func(p *store.RatePoint) float64 { return p.KVShare }, metric.Percent},
}

// loadRows are the rows of the batch size and of loads.
const loadRows = 1 + len(loads)

const (
	laneNames = 9 // width of the names of lanes
	leastRun  = 3 // rows of lanes of running requests that stay if the queue is long
)

// drawTimeline draws who ran and who waited when, the load below it, and why the selected request waited.
func drawTimeline(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	v.Heads, v.Body = v.Heads[:0], grid.Rect{}
	in := f.BoxAs(a, "Requests", "timeline, "+f.Window.String(), f.Window.String())
	x := timelineOf(s, f.Window, in.W-laneNames)
	ran, queued := timelineParts(s, x)
	if len(ran)+len(queued) == 0 {
		f.Absent(in, pane.Dim, "no request in the "+f.Window.String(), "press w for a longer window, v for the list")
		return
	}
	selected := v.Request(s)
	waited := waitLook(f, s.Engine.Caps)
	timelineLegend(in, f, waited)
	below := loadRows + 1
	if selected != nil {
		below += 2
	}
	rows := in.H - 1 - below
	run, wait := lanes(ran, x), lanes(queued, x)
	n := min(len(run), max(rows-len(wait), leastRun))
	y := 1
	for i, lane := range run[:max(min(n, rows), 0)] {
		in.Text(0, y, pane.Dim, "run "+strconv.Itoa(i+1))
		drawRan(in.Sub(laneNames, y, x.w, 1), f, lane, x, selected)
		y++
	}
	waits := max(min(len(wait), rows-n), 0)
	for i, lane := range wait[:waits] {
		if i == 0 {
			in.Text(0, y, pane.Dim, waited.name)
		}
		for _, p := range lane {
			drawPart(in.Sub(laneNames, y, x.w, 1), p, x, waited.role, waited.fill, selected)
		}
		y++
	}
	if more := len(run) - n + len(wait) - waits; more > 0 {
		f.Foot(a, pane.Dim, strconv.Itoa(more)+" more rows: press w for a shorter window")
	}
	y = max(min(y+1, in.H-below), 1)
	drawBatch(in.Sub(0, y, in.W, 1), f, run, x)
	drawLoads(in.Sub(0, y+1, in.W, len(loads)), f, f.Rates(s), x)
	timelineTicks(in.Sub(laneNames, y+loadRows, x.w, 1), x)
	if selected != nil {
		y += loadRows + 1
		if room := in.H - y - 1; room > request.LeastGlance {
			request.DrawGlance(in.Sub(0, y+1, in.W, room), s, f, selected)
		} else {
			in.Text(0, y, grid.Fg(theme.Accent).With(grid.Bold), pane.RequestTitle(f, selected))
			request.DrawWaits(in.Sub(0, y+1, in.W, 1), f, s.WaitsOf(selected))
		}
	}
}

// look is how the timeline draws something.
type look struct {
	role theme.Role
	fill rune
	name string
}

// waitLook is the look of the time before an engine began with a request: in its queue, if it reports one. Otherwise it
// may contain the prefill, until the engine reports when that was.
func waitLook(f *pane.Frame, caps event.Caps) look {
	if caps.Has(event.CapQueue) {
		return look{theme.PartQueue, fillOf(f, event.StageQueue), "queue"}
	}
	return look{theme.PartOther, fillOf(f, event.StageNone), "waits"}
}

// timelineLegend names the fills.
func timelineLegend(in grid.Area, f *pane.Frame, waited look) {
	l := in.Line(laneNames, 0)
	for _, k := range [...]look{
		waited,
		{theme.SeriesPrefill, fillOf(f, event.StagePrompt), "prefill"},
		{theme.SeriesDecode, decodeFill(f), "decode"},
		pacedLook(f),
		{theme.Bad, stallFill(f), "stall"},
	} {
		l.Fit(grid.Piece{Style: grid.Fg(k.role), Words: string(k.fill)}, grid.Piece{Style: pane.Dim, Words: " " + k.name + "   "})
	}
}

// fillOf returns the fill of a stage in the bars of TTFT.
func fillOf(f *pane.Frame, st event.Stage) rune {
	return f.Skin.Glyphs.Fills[pane.ComponentLook(st).Fill]
}

func decodeFill(f *pane.Frame) rune {
	if f.Skin.Colour() && !f.Skin.Glyphs.ASCII {
		return f.Skin.Glyphs.Bar
	}
	return fillOf(f, event.StageFirst)
}

func stallFill(f *pane.Frame) rune {
	if f.Skin.Glyphs.ASCII {
		return '!'
	}
	return f.Skin.Glyphs.Block
}

// pacedLook is the look of decoding that mostly waits on purpose.
func pacedLook(f *pane.Frame) look {
	return look{theme.PartOther, fillOf(f, event.StageNone), "paced"}
}

// drawPaced draws the columns in which pacing took most of the time that a request decoded.
func drawPaced(a grid.Area, f *pane.Frame, p part, x timeAxis) {
	r, k := p.r, pacedLook(f)
	if !(r.Paced.V > 0) || r.First == 0 {
		return
	}
	tokens := r.Tokens
	if len(tokens) == 0 { // only how much it was is known
		if r.Paced.V > time.Duration(p.to-r.First).Seconds()/2 {
			a.Fill(x.column(r.First), 0, x.column(p.to)-x.column(r.First), grid.Fg(k.role), k.fill)
		}
		return
	}
	const half = 0.5
	column, paced, decoded := 0, 0.0, 0.0 // ns in the column
	flush := func() {
		if paced > half*decoded && decoded > 0 {
			a.Fill(column, 0, 1, grid.Fg(k.role), k.fill)
		}
		paced, decoded = 0, 0
	}
	for i := 1; i < len(tokens); i++ {
		t, before := &tokens[i], tokens[i-1].At
		for _, span := range [...]struct {
			from, to event.Time
			paced    bool
		}{{before, t.At - event.Time(t.Gap)*event.Time(t.N), true}, {t.At - event.Time(t.Gap)*event.Time(t.N), t.At, false}} {
			for at, ns := range x.columns(max(span.from, before), span.to) {
				if at != column {
					flush()
					column = at
				}
				decoded += ns
				if span.paced {
					paced += ns
				}
			}
		}
	}
	flush()
}

// drawRan draws the requests of one lane: prefill until the first token, decoding, pacing, and stalls.
func drawRan(a grid.Area, f *pane.Frame, lane []part, x timeAxis, selected *store.Request) {
	for _, p := range lane {
		first := cmp.Or(p.r.First, p.to)
		drawPart(a, p, x, theme.SeriesDecode, decodeFill(f), selected)
		drawPaced(a, f, p, x)
		if from, to := x.column(p.from), x.column(first); to > from || p.r.First == 0 {
			a.Fill(from, 0, max(to-from, 1), grid.Fg(theme.SeriesPrefill), fillOf(f, event.StagePrompt))
		}
		drawStalls(a, f, p.r.Stalls, x)
		nameOf(a, p, x, selected)
	}
}

// drawStalls marks the columns that have stalls of a request: whole if they take half of its time, else as high as they do.
func drawStalls(a grid.Area, f *pane.Frame, stalls []store.Stall, x timeAxis) {
	of := float64(x.to-x.from) / float64(x.w) // ns in a column
	column, stalled := 0, 0.0                 // ns in the column
	for _, st := range stalls {
		for at, ns := range x.columns(st.At-event.Time(st.Gap), st.At) {
			if at != column {
				column, stalled = at, 0
			}
			stalled += ns
			fill := stallFill(f)
			if levels := f.Skin.Glyphs.Eighths; !f.Skin.Glyphs.ASCII && stalled < of/2 {
				fill = levels[1+int(stalled/of*float64(len(levels)-1))]
			}
			a.Fill(column, 0, 1, grid.Fg(theme.Bad), fill)
		}
	}
}

// drawPart draws an interval with the number of its request.
func drawPart(a grid.Area, p part, x timeAxis, role theme.Role, fill rune, selected *store.Request) {
	from := x.column(p.from)
	a.Fill(from, 0, max(x.column(p.to)-from, 1), grid.Fg(role), fill)
	nameOf(a, p, x, selected)
}

// nameOf writes the number of a request at the start of its interval, if there is room.
func nameOf(a grid.Area, p part, x timeAxis, selected *store.Request) {
	from := max(x.column(p.from), 0)
	words := "#" + strconv.Itoa(int(p.r.ID))
	st := grid.Fg(theme.Text)
	if selected != nil && p.r.ID == selected.ID {
		st = grid.Fg(theme.Accent).With(grid.Bold | grid.Underline)
	}
	if min(x.column(p.to), a.W)-from > grid.Width(words) {
		a.Text(from, 0, st, words)
	}
}

// drawBatch draws the lanes in use in each column: requests that ran together.
func drawBatch(a grid.Area, f *pane.Frame, run [][]part, x timeAxis) {
	counts, top := make([]int, x.w), 0
	for _, lane := range run {
		next := 0 // first column that the lane does not count in yet
		for _, p := range lane {
			from := max(x.column(p.from), 0)
			to := min(max(x.column(p.to), from+1), x.w)
			for next = max(next, from); next < to; next++ {
				counts[next]++
				top = max(top, counts[next])
			}
		}
	}
	a.Clip(0, 0, laneNames-1, pane.Dim, "batch "+strconv.Itoa(top))
	for col, n := range counts {
		if n > 0 {
			a.Column(laneNames+col, 0, 1, float64(n)/float64(top), grid.Fg(theme.SeriesDecode), f.Skin.Glyphs)
		}
	}
}

// drawLoads draws the load of each second on the axis, each row on its own scale.
func drawLoads(a grid.Area, f *pane.Frame, pts []store.RatePoint, x timeAxis) {
	seen := pts[max(len(pts)-int((x.to-x.from)/event.Time(time.Second))-2, 0):]
	for y, k := range loads {
		top := pane.ScaleTop(len(seen), func(i int) float64 { return k.at(&seen[i]) })
		words := k.name
		if top > 0 {
			words += " " + k.text(top)
		}
		a.Clip(0, y, laneNames-1, pane.Dim, words)
		plot := a.Sub(laneNames, y, x.w, 1)
		for i := range seen {
			v := k.at(&seen[i])
			if !(v > 0) || top <= 0 {
				continue
			}
			from, to := max(x.column(seen[i].At), 0), x.column(seen[i].At+event.Time(time.Second))
			for col := from; col < max(to, from+1) && col < x.w; col++ {
				plot.Column(col, 0, 1, v/top, grid.Fg(k.role), f.Skin.Glyphs)
			}
		}
	}
}

// timelineTicks writes how long ago the parts of the axis were.
func timelineTicks(a grid.Area, x timeAxis) {
	for i := range 4 {
		at := x.w * i / 4
		words := "-" + metric.Duration(int64(x.to-x.from)*int64(4-i)/4)
		a.Text(at, 0, pane.Dim, words)
	}
	a.Right(a.W, 0, pane.Dim, "0 s")
}
