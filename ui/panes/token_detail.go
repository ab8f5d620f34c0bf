package panes

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// tokenDetail describes the selected token and returns the rows used.
func (c *Ctx) tokenDetail(a grid.Area, v *RequestView, s *store.Snapshot) int {
	r := v.Request
	if _, _, ok := Received(r); !ok {
		return 0
	}
	y := c.tokenHead(a, v)
	t := keptToken(r, v.Token)
	y = c.tokenGap(a, y, v, t)
	if t == nil {
		return c.fact(a, y, "", dim, "only the gap is kept; text and stages are kept for the last "+countOf(uint64(len(r.Tokens)), "token", "tokens"))
	}
	return c.tokenFacts(a, y, r, t, s)
}

// tokenHead writes the number of the token.
func (c *Ctx) tokenHead(a grid.Area, v *RequestView) int {
	l := a.Line(0, 0)
	l.Put(head, "Token "+strconv.Itoa(v.Token)).Gap(2)
	switch {
	case len(v.Request.Gaps) > 0 && v.Token == Slowest(v.Request):
		l.Put(dim, "the slowest")
	case !v.Chosen:
		l.Put(dim, "the last")
	}
	return 1
}

// factNames is the width of the name column.
const factNames = 10

// fact writes a name and, beside it, words wrapped to as many rows as needed; it returns the next free row.
func (c *Ctx) fact(a grid.Area, y int, name string, st grid.Style, words string) int {
	if y >= a.H {
		return y
	}
	a.Text(0, y, dim, name)
	for _, line := range grid.Wrap(nil, words, a.W-factNames) {
		a.Text(factNames, y, st, line)
		y++
	}
	return y
}

// tokenGap writes the gap before the token, and its cause if it is long.
func (c *Ctx) tokenGap(a grid.Area, y int, v *RequestView, t *store.Token) int {
	r := v.Request
	gap, known := gapBefore(r, v.Token)
	if !known {
		return c.fact(a, y, "gap", dim, "none: the time before the first token is TTFT")
	}
	median := float64(r.ITL.P50)
	ratio := float64(gap) / max(median, 1)
	l := a.Line(factNames, y)
	a.Text(0, y, dim, "gap")
	l.Put(loud, metric.Duration(gap)).Gap(2).Put(gapStyle(ratio), metric.Rate(ratio)+c.Skin.Glyphs.Times).Put(dim, " the median")
	y++
	if t != nil && t.N > 1 {
		y = c.fact(a, y, "", dim, strconv.Itoa(t.N)+" tokens arrived together; each counts for a part of the gap")
	}
	why, st := c.cause(r, v.Token, ratio)
	return c.fact(a, y, "cause", st, why)
}

// cause returns why a token was late, as far as that is known.
func (c *Ctx) cause(r *store.Request, n int, ratio float64) (string, grid.Style) {
	for _, s := range r.Stalls {
		if s.Index <= n && inStall(r, s.Index, n) {
			return describeCause(s.Cause), bad
		}
	}
	switch {
	case ratio >= stallGap:
		return "late, but below the stall threshold of the tokens before it", watch
	case ratio >= slowGap:
		return "slower than typical, but no stall (" + strconv.Itoa(store.StallFactor) + c.Skin.Glyphs.Times + " the median)", watch
	}
	return "typical", dim
}

// inStall reports whether token n arrived together with the token at index, where a stall begins.
func inStall(r *store.Request, index, n int) bool {
	t := keptToken(r, index)
	return index == n || t != nil && n < t.Nth+t.N
}

// describeCause describes the cause of a stall.
func describeCause(cause string) string {
	switch cause {
	case "unknown":
		return "unknown cause"
	case verdict.WaitingForCore:
		return verdict.WaitingForCore + ": runnable engine threads got no core"
	}
	return sanitize.Line(cause)
}

// tokenFacts writes everything that the engine reported for the token.
func (c *Ctx) tokenFacts(a grid.Area, y int, r *store.Request, t *store.Token, s *store.Snapshot) int {
	words := c.tokenWords(t)
	switch {
	case words == "":
		y = c.fact(a, y, "text", dim, "not reported")
	default:
		y = c.fact(a, y, "text", data, words)
	}
	id := "id not reported"
	if t.ID >= 0 {
		id = "id " + strconv.Itoa(int(t.ID))
	}
	if t.Step > 0 {
		id += ", forward pass " + strconv.FormatUint(t.Step, 10)
	}
	y = c.fact(a, y, "token", text, id)
	at := clock(sessionTime(s, t.At))
	if !r.MissedStart {
		at = metric.Duration(int64(t.At-r.Enqueued)) + " after enqueue, " + at
	}
	y = c.fact(a, y, "at", text, at)
	if t.HasLP {
		y = c.fact(a, y, "prob.", text, probability(t.LogP)+", logprob "+strconv.FormatFloat(float64(t.LogP), 'f', 3, 32))
	}
	for i, top := range t.Top {
		name := ""
		if i == 0 {
			name = "top"
		}
		y = c.fact(a, y, name, dim, probability(top.LogP)+"  "+c.oneLine(top.Text))
	}
	y = c.tokenSplit(a, y, t)
	return c.tokenPicks(a, y, t, s)
}

// probability formats a log probability as a percentage.
func probability(logp float32) string { return metric.Percent(math.Exp(float64(logp))) }

// tokenSplit draws the parts of the token's forward pass.
func (c *Ctx) tokenSplit(a grid.Area, y int, t *store.Token) int {
	parts, _, n := meanSplit(&store.Request{Tokens: []store.Token{*t}})
	if n == 0 || a.H-y < len(parts)+2 {
		return y
	}
	a.Text(0, y+1, head, "Stages of this token")
	for i := range parts {
		parts[i].fill = c.Skin.Glyphs.Bar
	}
	drawTimeParts(a.Sub(0, y+2, a.W, len(parts)), parts)
	return y + 2 + len(parts)
}

// tokenPicks lists the experts picked for the token, layer by layer.
func (c *Ctx) tokenPicks(a grid.Area, y int, t *store.Token, s *store.Snapshot) int {
	used := s.Model.ExpertsUsed
	if s.Experts != nil {
		used = s.Experts.Used
	}
	if used <= 0 || a.H-y < 3 {
		return y
	}
	a.Text(0, y+1, head, "Expert picks")
	if len(t.Picks) < used {
		return c.fact(a, y+2, "", dim, "per-token picks: not reported by this engine")
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
		at.Text(0, 0, dim, "L"+strconv.Itoa(l))
		for k := range used {
			at.Right(label+(k+1)*(widest+1)-1, 0, text, strconv.Itoa(int(t.Picks[l*used+k])))
		}
	}
	return y + 2 + rows
}

// requestStalls lists the last stalls of a request with their causes and returns the rows used.
func (c *Ctx) requestStalls(a grid.Area, v *RequestView) int {
	r := v.Request
	if a.H < 1 || r.ITL.Count == 0 {
		return 0
	}
	a.Text(0, 0, head, "Stalls")
	if r.StallCount() == 0 {
		a.Text(8, 0, good, string(c.Skin.Glyphs.Good)+" none: no gap of "+strconv.Itoa(store.StallFactor)+c.Skin.Glyphs.Times+" the median or more")
		return 1
	}
	a.Text(8, 0, dim, strconv.Itoa(r.StallCount())+"  (n: next)")
	median := max(float64(r.ITL.P50), 1)
	list := r.Stalls[max(len(r.Stalls)-(a.H-1), 0):]
	for y, s := range list {
		l := a.Line(0, 1+y)
		st := dim
		if s.Index == v.Token {
			st = grid.Fg(theme.Accent).With(grid.Bold)
		}
		l.Put(st, "token").Tail(6, st, strconv.Itoa(s.Index)).Tail(9, bad, metric.Duration(int64(s.Gap)))
		l.Tail(7, text, metric.Rate(float64(s.Gap)/median)+c.Skin.Glyphs.Times).Gap(2)
		a.Elide(l.X, l.Y, max(l.Room(), 0), text, shortCause(s.Cause), c.Skin.Glyphs.Ellipsis)
	}
	return 1 + len(list)
}

// shortCause describes the cause of a stall in few words.
func shortCause(cause string) string {
	if cause == "unknown" {
		return describeCause(cause)
	}
	return sanitize.Line(cause)
}
