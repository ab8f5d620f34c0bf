package overview

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// nothingYet reports whether there was neither a request nor a report of a server.
func nothingYet(s *store.Snapshot) bool {
	return s.Counts.Finished+uint64(s.Counts.Running+s.Counts.Queued) == 0 && len(s.Requests) == 0 && s.Aggregates.At == 0
}

func drawThroughput(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	if s.CallsOnly() {
		drawCallRates(f.Box(a, "CUDA calls per second; requests are not seen", "CUDA calls per second"), s, f)
		return
	}
	in := f.Box(a, rateCovers("tokens/s", s)...)
	if nothingYet(s) {
		if !f.Waiting(in, s) {
			f.Absent(in, pane.Dim, "no request yet", f.Suggest)
		}
		return
	}
	r := pane.RowWriter{A: in}
	drawNumbers(&r, s, f)
	drawGroups(&r, s)
	pts := f.Rates(s)
	r.Trend(f, "tokens/s", len(pts), func(i int) float64 { return pane.RateOrGap(&pts[i], float64(pts[i].Generated)) }, 0, theme.SeriesDecode, theme.AreaDecode)
}

// rateCovers returns titles of the throughput, the longest first, with the age of the rates of an idle engine.
func rateCovers(title string, s *store.Snapshot) []string {
	if age := pane.AgeOf(s); age != "" {
		return []string{title + ", rates " + age, age}
	}
	return []string{title}
}

// drawNumbers draws the throughput, the load, what a server reports besides, and the totals of the session.
func drawNumbers(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	drawLast(r, s, f, drawRates)
	drawRequests(r, s)
	drawKV(r, s, f)
	drawLast(r, s, f, drawBandwidth)
	drawLast(r, s, f, drawCalls)
	drawDrafts(r, s)
	drawCacheHits(r, s)
	drawTotals(r, s)
	if len(s.Aggregates.Numbers) > 0 && s.Throughput.Requests.OK() {
		pane.PutReading(r.Next("requests"), s.Throughput.Requests, metric.Rate, "finished/s", pane.Data)
	}
	drawRankLoad(r, s, f)
	drawMore(r, s, f)
}

// drawLast draws rows of rates: the last ones, dimmed, of an idle engine.
func drawLast(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame, draw func(*pane.RowWriter, *store.Snapshot, *pane.Frame)) {
	if s.LastActive == nil {
		draw(r, s, f)
		return
	}
	from := r.Y
	draw(r, s.LastActive, f)
	r.A.Sub(0, from, r.A.W, r.Y-from).Fade()
}

// drawRates draws prefill, decode and total throughput with their trend over the last seconds.
func drawRates(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	t, pts := s.Throughput, f.Rates(s)
	format := func(v float64) string { return pane.AtLeast(metric.Rate(v), s.Counts.AtLeast && v > 0) } // polls miss tokens
	for i, row := range [...]struct {
		name string
		v    event.Reading
		role theme.Role
		at   func(int) float64
	}{
		{"decode", t.Decode, theme.SeriesDecode, func(i int) float64 { return pane.RateOrGap(&pts[i], pts[i].Decode) }},
		{"prefill", t.Prefill, theme.SeriesPrefill, func(i int) float64 { return pane.RateOrGap(&pts[i], pts[i].Prefill) }},
		{"TTPS", t.TTPS, theme.Title, func(i int) float64 { return pane.RateOrGap(&pts[i], float64(pts[i].Generated)) }},
	} {
		if row.v.Origin == event.NotReported {
			continue
		}
		a := r.Next(row.name)
		st := pane.Loud
		if i > 0 {
			st = pane.Data
		}
		x := pane.PutReading(a, row.v, format, "tok/s", st)
		n := min(len(pts), a.W-x)
		at := func(i int) float64 { return row.at(len(pts) - n + i) }
		a.Spark(x, 0, a.W-x, 1, n, at, pane.ScaleTop(n, at), row.role, f.Skin)
	}
}

func drawRequests(r *pane.RowWriter, s *store.Snapshot) {
	t, running, queued := s.Throughput, s.Totals().Running, s.Totals().Queued
	if running.Origin == event.NotReported && queued.Origin == event.NotReported {
		return
	}
	a := r.Next("running")
	words := strconv.Itoa(t.Running)
	if t.Slots > 0 {
		words += "/" + strconv.Itoa(t.Slots)
	}
	x := pane.ValueWidth + 1
	if running.OK() {
		a.Right(pane.ValueWidth, 0, pane.Data, words)
	} else {
		x = a.Text(1, 0, pane.Dim, running.Origin.String()) + 2
	}
	l := a.Line(x, 0)
	if queued.OK() {
		n, st := metric.Count(queued.V), pane.Plain
		if queued.V > 0 {
			st = pane.Watch
		}
		l.Put(pane.Dim, pane.FirstFitting(l.Room()-grid.Width(n), "queued ", "queue ", "q ", "")).Put(st, n)
	}
	pane.FitReading(&l, "  busy ", t.BusyShare, metric.Percent, "")
}

func drawKV(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	counted := s.KV.Used > 0 || s.KV.Derived
	if s.KV.Usage.Origin == event.NotReported && !counted {
		return
	}
	a := r.Next("KV cache")
	if !s.KV.Usage.OK() {
		l := a.Line(1, 0)
		absent := s.KV.Usage.Origin.String()
		if counted {
			l.Put(pane.Plain, metric.Count(float64(s.KV.Used)))
			if n := s.KV.Used * s.Model.KVBytes; n > 0 {
				l.Fit(grid.Piece{Style: pane.Dim, Words: " cells, "}, grid.Piece{Style: pane.Plain, Words: metric.Bytes(float64(n))})
			} else {
				l.Put(pane.Dim, " cells")
			}
			absent = pane.FirstFitting(l.Room(), ", total "+absent, " of unknown total", "")
		}
		l.Put(pane.Dim, absent)
		drawResidency(r, s)
		return
	}
	a.Right(pane.ValueWidth, 0, pane.Data, metric.Percent(s.KV.Usage.V))
	cells := strconv.Itoa(int(s.KV.Used)) + "/" + strconv.Itoa(int(s.KV.Total))
	w := a.W - pane.ValueWidth - 1
	if w > len(cells)+8 && s.KV.Total > 0 {
		a.Right(a.W, 0, pane.Dim, cells)
		w -= len(cells) + 1
	}
	a.Bar(pane.ValueWidth+1, 0, w, s.KV.Usage.V, loadRole(s.KV.Usage.V), f.Skin.Colour(), f.Skin.Glyphs)
	drawResidency(r, s)
}

// drawResidency draws how long requests held their cells.
func drawResidency(r *pane.RowWriter, s *store.Snapshot) {
	if s.KV.Residency.Count == 0 {
		return
	}
	l := r.Next("KV held").Line(1, 0)
	l.Put(pane.Dim, "p50 ").Put(pane.Plain, metric.Duration(s.KV.Residency.P50))
	l.Fit(grid.Piece{Style: pane.Dim, Words: "  p99 "}, grid.Piece{Style: pane.Plain, Words: metric.Duration(s.KV.Residency.P99)})
}

// loadRole colours a utilisation by how close it is to 1.
func loadRole(share float64) theme.Role {
	switch {
	case share >= 0.9:
		return theme.Bad
	case share >= 0.75:
		return theme.Watch
	}
	return theme.SeriesPrefill
}

func drawBandwidth(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	t := s.Throughput
	if !t.Bandwidth.OK() {
		return
	}
	l := r.Next("bandwidth").Line(1, 0)
	l.Put(pane.Data, metric.Bytes(t.Bandwidth.V)+"/s")
	if t.ReadShare.OK() && pane.FitReading(&l, " of ", t.ReadBandwidth, metric.BytesPerSecond, "") {
		pane.FitReading(&l, ", ", t.ReadShare, metric.Percent, "")
	}
	pane.FitReading(&l, ", ", t.PassExperts, metric.Rate, " experts a pass")
}

// drawCalls writes what decoding called of CUDA, per token and as shares of the passes.
func drawCalls(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	c := &s.Throughput.Calls
	if !c.Launches.OK() {
		return
	}
	line := func(name string, first grid.Piece, more ...grid.Piece) {
		l := r.Next(name).Line(1, 0)
		l.Fit(first)
		for more = append(more, grid.Piece{}); len(more) > 1 && l.Fit(more[0], more[1]); more = more[2:] {
		}
	}
	piece := func(v event.Reading, format func(float64) string) grid.Piece {
		return grid.Piece{Style: pane.Data, Words: metric.Reading(v, format)}
	}
	word := func(words string) grid.Piece { return grid.Piece{Style: pane.Dim, Words: words} }
	line("launches", piece(c.Launches, metric.Rate), word(", graphs "), piece(c.Graphs, metric.Rate), word(" per token"))
	line("H2D", piece(c.To, metric.Bytes), word(", D2H "), piece(c.From, metric.Bytes), word(" per token"))
	line("GPU waits", piece(c.Gap, metric.Percent), word(", CPU "), piece(c.Wait, metric.Percent), word(", copies "), piece(c.Copying, metric.Percent), word(" of a pass"))
}

// drawCallRates draws what a process calls of CUDA per second, with the trend of each number.
func drawCallRates(in grid.Area, s *store.Snapshot, f *pane.Frame) {
	const names, values = 18, 12
	pts := s.Host.Series
	for g := event.GaugeLaunches; g <= event.GaugeCounted; g++ {
		y, info, reading := int(g-event.GaugeLaunches), g.Info(), g.Reading(s.Host.Host)
		in.Text(0, y, pane.Dim, info.Title)
		x := names + values + 1
		if reading.OK() {
			in.Right(names+values, y, pane.Loud, metric.Format(info.Unit)(reading.V))
		} else {
			x = in.Text(names, y, pane.Dim, reading.Origin.String()) + 2
		}
		n := min(len(pts), max(in.W-x, 0))
		at := func(i int) float64 { return pts[len(pts)-n+i].V[g] }
		in.Spark(x, y, in.W-x, 1, n, at, pane.ScaleTop(n, at), theme.SeriesPrefill, f.Skin)
	}
	const waits = int(event.GaugeCounted-event.GaugeLaunches) + 2
	if low := in.Sub(0, waits, in.W, in.H-waits); low.H > 4 && len(pts) > 1 {
		low.Text(0, 0, pane.Heading, "Time waiting for the GPU, share of the wall clock")
		at := func(_, i int) float64 { return pts[i].V[event.GaugeGPUWait] }
		pts = pts[max(len(pts)-in.W, 0):]
		top := max(pane.ScaleTop(len(pts), func(i int) float64 { return at(0, i) }), 1)
		grid.Curves{
			N: len(pts), Top: top, Roles: []theme.Role{theme.SeriesPrefill}, Fill: true,
			Label: func(v, _ float64) string { return metric.Percent(v) }, At: at,
		}.Draw(low.Sub(0, 1, low.W, low.H-1), f.Skin)
	}
}

// drawTotals writes the totals of the session.
func drawTotals(r *pane.RowWriter, s *store.Snapshot) {
	n, t := s.Counts, s.Totals()
	if t.Generated.Origin == event.NotReported && t.Prompt.Origin == event.NotReported && n.Finished+n.Failed+n.Cancelled+n.Unseen == 0 && !t.FinishedSeen.OK() {
		return
	}
	l := r.Next("session").Line(1, 0)
	put := func(v event.Reading, atLeast bool, unit string) {
		if v.Origin != event.NotReported {
			gap := strings.Repeat(" ", min(l.X-1, 1))
			l.Fit(grid.Piece{Style: pane.Plain, Words: gap + pane.AtLeast(metric.Count(v.V), atLeast)}, grid.Piece{Style: pane.Dim, Words: unit})
		}
	}
	put(t.Generated, t.AtLeast, " out")
	put(t.Prompt, t.PromptAtLeast, " in")
	for _, k := range []struct {
		n    uint64
		word string
		st   grid.Style
	}{{n.Finished, " done", pane.Plain}, {n.Failed, " failed", pane.Bad}, {n.Cancelled, " cancelled", pane.Watch}, {n.Unseen, " end unseen", pane.Watch}} {
		if k.n > 0 {
			l.Fit(grid.Piece{Style: k.st, Words: "  " + metric.Count(float64(k.n)) + k.word})
		}
	}
	if seen := t.FinishedSeen; seen.OK() {
		l.Fit(grid.Piece{Style: pane.Plain, Words: "  " + metric.Count(seen.V) + "+ done"})
		l.Fit(grid.Piece{Style: pane.Dim, Words: " (" + store.MissedByPolls + ")"})
	}
}

// drawGroups lists the request groups if there are several.
func drawGroups(r *pane.RowWriter, s *store.Snapshot) {
	if len(s.Counts.Groups) < 2 {
		return
	}
	for _, g := range s.Counts.Groups {
		name := sanitize.Line(g.Name)
		if name == "" {
			name = "(default)"
		}
		if _, err := netip.ParseAddr(name); err == nil && len(name) > pane.NameWidth {
			name = "…" + name[len(name)-pane.NameWidth+1:] // clients of one network differ at the end
		}
		r.A.Elide(0, r.Y, pane.NameWidth, pane.Dim, name, '…')
		a := r.Next("")
		l := a.Line(pane.PutReading(a, g.TPS, metric.Rate, "tok/s", pane.Plain), 0)
		l.Fit(grid.Piece{Style: pane.Dim, Words: pane.CountOf(uint64(g.Requests), "request", "requests")})
		if g.RTT.Count > 0 {
			l.Fit(grid.Piece{Style: pane.Dim, Words: "  network " + metric.Duration(g.RTT.P50)})
		}
	}
}
