package request

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// tokenDetail describes the selected token and returns the rows used.
func tokenDetail(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) int {
	r := v.Request
	if _, _, ok := Received(r); !ok {
		return 0
	}
	y := tokenHead(a, f, v)
	t := KeptToken(r, v.Token)
	y = tokenGap(a, s, f, y, v, t)
	if t == nil {
		return fact(a, f, y, "", pane.Dim, "only the gap is kept; text and stages are kept for the last "+pane.CountOf(uint64(len(r.Tokens)), "token", "tokens"))
	}
	return tokenFacts(a, s, f, y, r, t)
}

// tokenHead writes the number of the token.
func tokenHead(a grid.Area, f *pane.Frame, v *View) int {
	l := a.Line(0, 0)
	l.Put(pane.Heading, "Token "+strconv.Itoa(v.Token)).Gap(2)
	switch {
	case len(v.Request.Gaps) > 0 && v.Token == Slowest(v.Request):
		l.Put(pane.Dim, "the slowest")
	case !v.Chosen:
		l.Put(pane.Dim, "the last")
	}
	return 1
}

// factNames is the width of the name column.
const factNames = 10

// fact writes a name and, beside it, words wrapped to as many rows as needed; it returns the next free row.
func fact(a grid.Area, f *pane.Frame, y int, name string, st grid.Style, words string) int {
	if y >= a.H {
		return y
	}
	a.Text(0, y, pane.Dim, name)
	return a.Wrapped(factNames, y, st, words)
}

// tokenGap writes the gap before the token, and its cause if it is long.
func tokenGap(a grid.Area, s *store.Snapshot, f *pane.Frame, y int, v *View, t *store.Token) int {
	r := v.Request
	gap, known := GapBefore(r, v.Token)
	if !known {
		return fact(a, f, y, "gap", pane.Dim, "none: the time before the first token is TTFT")
	}
	median := float64(r.ITL.P50)
	ratio := float64(gap) / max(median, 1)
	l := a.Line(factNames, y)
	a.Text(0, y, pane.Dim, "gap")
	l.Put(pane.Loud, metric.Duration(gap)).Gap(2).Put(pane.GapStyle(ratio), metric.Rate(ratio)+f.Skin.Glyphs.Times).Put(pane.Dim, " the median")
	y++
	if t != nil && t.N > 1 {
		y = fact(a, f, y, "", pane.Dim, strconv.Itoa(int(t.N))+" tokens arrived together; each counts for a part of the gap")
	}
	why, st := Cause(f, r, v.Token, ratio)
	return tokenMemory(a, s, f, fact(a, f, y, "cause", st, why), t)
}

// tokenMemory writes how long reading the weights and the KV cache of the token takes at least.
func tokenMemory(a grid.Area, s *store.Snapshot, f *pane.Frame, y int, t *store.Token) int {
	wall := s.Throughput.ReadBandwidth
	if t == nil || t.Read == 0 || t.N > 1 || t.Gap <= 0 || !wall.OK() {
		return y
	}
	floor := t.Read / wall.V * 1e9
	words := "of the gap: " + metric.Duration(int64(floor)) + " for " + metric.Bytes(t.Read) + " at " + metric.BytesPerSecond(wall.V)
	if floor > float64(t.Gap) {
		words += ", so they come from caches"
	}
	return fact(a, f, y, "memory", pane.Plain, metric.Percent(floor/float64(t.Gap))+" "+words)
}

// Cause returns why a token was late, as far as that is known.
func Cause(f *pane.Frame, r *store.Request, n int, ratio float64) (string, grid.Style) {
	for _, s := range r.Stalls {
		if s.Index <= n && inStall(r, s.Index, n) {
			return stallWords(&s), pane.Bad
		}
	}
	switch {
	case slices.Contains(r.Late, int32(n)):
		return "a stall; the cause is kept of the " + strconv.Itoa(len(r.Stalls)) + " longest only", pane.Bad
	case ratio >= pane.StallGap && r.ITL.Count <= store.StallSamples:
		return "late, but not judged: a stall is judged among more than " + strconv.Itoa(store.StallSamples) + " gaps", pane.Watch
	case ratio >= pane.StallGap:
		return "late, but below the stall threshold of the tokens before it", pane.Watch
	case ratio >= pane.SlowGap:
		return "slower than typical, but no stall (" + strconv.Itoa(store.StallFactor) + f.Skin.Glyphs.Times + " the median)", pane.Plain
	}
	return "typical", pane.Dim
}

// inStall reports whether token n arrived together with the token at index, where a stall begins.
func inStall(r *store.Request, index, n int) bool {
	t := KeptToken(r, index)
	return index == n || t != nil && n < int(t.Nth+t.N)
}

// stallWords describes the cause of a stall with its evidence.
func stallWords(s *store.Stall) string {
	words := s.Words()
	if s.Evidence != "" {
		words += ": " + s.Evidence
	}
	return words
}

// tokenFacts writes everything that the engine reported for the token.
func tokenFacts(a grid.Area, s *store.Snapshot, f *pane.Frame, y int, r *store.Request, t *store.Token) int {
	if words := tokenWords(f, t); words != "" || s.Engine.Caps.Has(event.CapText) { // a token may have no text of its own
		y = fact(a, f, y, "text", pane.Data, cmp.Or(words, `""`))
	}
	id := "id not reported"
	if t.ID >= 0 {
		id = "id " + strconv.Itoa(int(t.ID))
	}
	if t.Step > 0 {
		id += ", forward pass " + strconv.FormatUint(t.Step, 10)
	}
	if t.Reasoning > 0 {
		id += ", reasoning"
	}
	y = fact(a, f, y, "token", pane.Plain, id)
	at := pane.Clock(pane.SessionTime(s, t.At))
	if !r.MissedStart {
		at = metric.Duration(int64(t.At-r.Enqueued)) + " after enqueue, " + at
	}
	y = fact(a, f, y, "at", pane.Plain, at)
	if t.Handover > 0 {
		y = fact(a, f, y, "handover", pane.Plain, metric.Duration(int64(t.Handover))+" later")
	}
	if t.HasLP {
		y = fact(a, f, y, "prob.", pane.Plain, probability(t.LogP)+", logprob "+strconv.FormatFloat(float64(t.LogP), 'f', 3, 32))
	}
	for i, top := range t.Top {
		name := ""
		if i == 0 {
			name = "top"
		}
		y = fact(a, f, y, name, pane.Dim, probability(top.LogP)+"  "+cmp.Or(oneLine(f, top.Text), "id "+strconv.Itoa(int(top.ID))))
	}
	y = tokenCalls(a, s, f, y, t)
	y = tokenSplit(a, f, y, t)
	return tokenPicks(a, s, f, y, t)
}

// tokenCalls writes what the token's forward pass called of CUDA.
func tokenCalls(a grid.Area, s *store.Snapshot, f *pane.Frame, y int, t *store.Token) int {
	c, counted := t.Calls, s.Host.Engine.Counted
	switch {
	case c != nil:
	case counted.OK():
		return fact(a, f, y, "CUDA", pane.Dim, "not counted in this pass; calls are counted in "+metric.Percent(counted.V)+" of the time")
	default:
		return y
	}
	words := func(r event.Reading, format func(float64) string) string { return metric.Reading(r, format) }
	ns := func(v float64) string { return metric.Duration(int64(v)) }
	y = fact(a, f, y, "launches", pane.Plain, words(c.Launches, metric.Count)+" kernels, graphs "+words(c.Graphs, metric.Count))
	y = fact(a, f, y, "H2D", pane.Plain, words(c.To, metric.Bytes)+" in "+words(c.ToTime, ns))
	y = fact(a, f, y, "D2H", pane.Plain, words(c.From, metric.Bytes)+" in "+words(c.FromTime, ns))
	of := func(r event.Reading) string {
		if r.OK() {
			r.V = metric.Share(r.V, c.Pass.V)
		}
		return words(r, metric.Percent)
	}
	return fact(a, f, y, "waits", pane.Plain, "CPU for the GPU "+of(c.Wait)+" of the pass, GPU for the CPU "+of(c.Gap))
}

// probability formats a log probability as a percentage.
func probability(logp float32) string { return metric.Percent(math.Exp(float64(logp))) }

// tokenSplit draws the parts of the token's forward pass.
func tokenSplit(a grid.Area, f *pane.Frame, y int, t *store.Token) int {
	parts, _, n := pane.MeanSplit([]store.Token{*t})
	if n == 0 || a.H-y < len(parts)+2 {
		return y
	}
	a.Text(0, y+1, pane.Heading, "Stages of this token")
	for i := range parts {
		parts[i].Fill = f.Skin.Glyphs.Bar
	}
	pane.DrawTimeParts(a.Sub(0, y+2, a.W, len(parts)), parts)
	return y + 2 + len(parts)
}

// tokenPicks lists the experts picked for the token, layer by layer.
func tokenPicks(a grid.Area, s *store.Snapshot, f *pane.Frame, y int, t *store.Token) int {
	used := s.Model.ExpertsUsed
	if s.Experts != nil {
		used = s.Experts.Used
	}
	if used <= 0 || a.H-y < 3 {
		return y
	}
	a.Text(0, y+1, pane.Heading, "Expert picks")
	if len(t.Picks) < used {
		return fact(a, f, y+2, "", pane.Dim, "per-token picks: not reported by this engine")
	}
	layers := len(t.Picks) / used
	widest := 1
	for _, p := range t.Picks {
		widest = max(widest, len(strconv.Itoa(int(p))))
	}
	label := len("L"+strconv.Itoa(layers-1)) + 1
	cell := label + used*(widest+1) + 2
	cols := max((a.W+2)/cell, 1)
	rows := min((layers+cols-1)/cols, a.H-y-2)
	for l := range min(layers, rows*cols) {
		at := a.Sub(l/rows*cell, y+2+l%rows, cell, 1)
		at.Text(0, 0, pane.Dim, "L"+strconv.Itoa(l))
		for k := range used {
			at.Right(label+(k+1)*(widest+1)-1, 0, pane.Plain, strconv.Itoa(int(t.Picks[l*used+k])))
		}
	}
	return y + 2 + rows
}

// requestStalls lists the stalls of a request with their causes, the longest first, and returns the rows used.
func requestStalls(a grid.Area, f *pane.Frame, v *View) int {
	r := v.Request
	if a.H < 1 || r.ITL.Count == 0 {
		return 0
	}
	a.Text(0, 0, pane.Heading, "Stalls")
	switch {
	case r.StallCount() > 0:
	case r.ITL.Count <= store.StallSamples:
		a.Text(8, 0, pane.Dim, "not judged: "+strconv.Itoa(store.StallSamples)+" gaps or fewer")
		return 1
	default:
		a.Text(8, 0, pane.Good, string(f.Skin.Glyphs.Good)+" none: no gap of "+strconv.Itoa(store.StallFactor)+f.Skin.Glyphs.Times+" the median or more")
		return 1
	}
	list := slices.SortedStableFunc(slices.Values(r.Stalls), func(a, b store.Stall) int { return cmp.Compare(b.Gap, a.Gap) })
	list = list[:min(len(list), a.H-1)]
	note := strconv.Itoa(r.StallCount())
	if len(list) < r.StallCount() {
		note += ", the longest"
	}
	a.Text(8, 0, pane.Dim, note+"  (n: next)")
	median := max(float64(r.ITL.P50), 1)
	label, factor := "token", true
	for _, s := range list { // a cause is worth more than what the pane shows elsewhere
		over := len("token  1000  1.00 ms  10.0x  ") + grid.Width(s.Words()) - a.W
		factor = factor && over <= 0
		if over > len("  10.0x") {
			label = ""
		}
	}
	for y, s := range list {
		l := a.Line(0, 1+y)
		st := pane.Dim
		if s.Index == v.Token {
			st = grid.Fg(theme.Accent).With(grid.Bold)
		}
		l.Put(st, label).Tail(6, st, strconv.Itoa(s.Index)).Tail(9, pane.Bad, metric.Duration(int64(s.Gap)))
		if factor {
			l.Tail(7, pane.Plain, metric.Rate(float64(s.Gap)/median)+f.Skin.Glyphs.Times)
		}
		l.Gap(2)
		a.Elide(l.X, l.Y, max(l.Room(), 0), pane.Plain, s.Words(), f.Skin.Glyphs.Ellipsis)
	}
	return 1 + len(list)
}
