package request

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/table"
)

// drawRequest draws one request: its stages, its tokens and the selected token.
func drawRequest(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	v.Cells = Cells{}
	r := v.Request
	if r == nil {
		NoRequest(f.BoxAs(a, "Request", ""), s, f)
		return
	}
	in := f.BoxAs(a, "Request", pane.RequestTitle(f, r), "#"+strconv.Itoa(int(r.ID)))
	requestFacts(in, f, r)
	v.ClampSelection()
	gap := 1
	if in.H < 24 {
		gap = 0
	}
	body := in.Sub(0, 1+gap, in.W, in.H-1-gap)
	if in.W >= 104 && in.H >= 20 {
		left := in.W*58/100 - 2
		requestLeft(body.Sub(0, 0, left, body.H), s, f, v)
		requestRight(body.Sub(left+3, 0, body.W-left-3, body.H), s, f, v)
		return
	}
	detail := min(max(body.H/4, 4), 14)
	used := requestLeft(body.Sub(0, 0, body.W, body.H-detail), s, f, v)
	if body.H-used > detail {
		used++
	}
	requestRight(body.Sub(0, used, body.W, body.H-used), s, f, v)
}

// requestLeft draws stages, token cells, text and gaps, one below another where there is room, and returns the rows
// used.
func requestLeft(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) int {
	loose := a.H >= 26
	y := waterfall(a.Sub(0, 0, a.W, max(a.H-3, 1)), s, f, v)
	section := func(rows int) grid.Area {
		if loose && y > 0 {
			y++
		}
		rows = max(min(rows, a.H-y), 0)
		y += rows
		return a.Sub(0, y-rows, a.W, rows)
	}
	tokenCells(section(cellRows(f, a.W, v.Request)+1), f, v, s.Engine.Caps)
	if a.H-y >= 5 && v.Request.Text != "" {
		tokenText(section(min(textRows(v.Request, a.W)+1, max((a.H-y)*2/3, 4))), f, v)
	}
	if a.H-y >= 5 && len(v.Request.Gaps) > 0 {
		gapColumns(section(min(a.H-y, 20)), f, v)
	}
	return y
}

// requestRight draws the selected token, the stalls, the prompt by layer and the prompt text.
func requestRight(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	y := tokenDetail(a, s, f, v)
	if y > 0 {
		y++
	}
	y += requestStalls(a.Sub(0, y, a.W, a.H-y), f, v) + 1
	if n := len(v.Request.Layers); n > 0 && a.H-y >= 6 {
		n = min(n+1, a.H-y)
		pane.DrawLayers(a.Sub(0, y, a.W, n), f, v.Request)
		y += n + 1
	}
	if words := omittedParts(v.Request); words != "" && a.H-y >= 1 {
		a.Elide(0, y, a.W, pane.Dim, words, f.Skin.Glyphs.Ellipsis)
		y += 2
	}
	if r := v.Request; a.H-y >= 3 && (r.Prompt != "" || !r.Slim && !s.Engine.Caps.Has(event.CapText)) {
		words, st := r.Prompt, pane.Plain
		if words == "" {
			words, st = f.TextAbsence(s), pane.Dim
		}
		promptText(a.Sub(0, y, a.W, a.H-y), f, words, st)
	}
}

// omittedParts lists what the store omitted from a request; it omits more the more requests are open.
func omittedParts(r *store.Request) string {
	var out []string
	if n := r.Omitted.Spans; n > 0 {
		out = append(out, pane.CountOf(uint64(n), "stage", "stages"))
	}
	if r.Omitted.Layers {
		out = append(out, "the layers")
	}
	if n := r.Omitted.Stalls; n > 0 {
		out = append(out, pane.CountOf(uint64(n), "stall", "stalls"))
	}
	if r.Omitted.Prompt {
		out = append(out, "the end of the prompt")
	}
	if out == nil {
		return ""
	}
	return "omitted: " + strings.Join(out, ", ")
}

// promptText writes the beginning of the prompt, or why there is none.
func promptText(a grid.Area, f *pane.Frame, words string, st grid.Style) {
	a.Text(0, 0, pane.Heading, "Prompt")
	lines := grid.Wrap(nil, sanitize.Text(words), a.W)
	for y, line := range lines[:min(len(lines), a.H-1)] {
		a.Text(0, 1+y, st, line)
	}
	if len(lines) > a.H-1 {
		a.Cell(a.W-1, a.H-1, pane.Dim, f.Skin.Glyphs.Ellipsis)
	}
}

// requestFacts writes the numbers of a request in one row, the most important first.
func requestFacts(a grid.Area, f *pane.Frame, r *store.Request) {
	gl := f.Skin.Glyphs
	l := a.Line(0, 0)
	fact := func(name string, v event.Reading, format func(float64) string, unit string) {
		words, st := "-", pane.Dim
		switch {
		case v.OK():
			words, st = format(v.V)+unit, pane.Loud
		case name != "TTFT" && name != "TPOT" && name != "E2EL":
			return
		}
		l.Fit(grid.Piece{Style: pane.Dim, Words: name + " "}, grid.Piece{Style: st, Words: words}, grid.Piece{Words: "   "})
	}
	fact("TTFT", r.TTFT, metric.Seconds, "")
	if r.TTFT.OK() && r.Targets.TTFT > 0 && !r.Cold {
		l.Gap(-2)
		if r.HitTarget {
			l.Put(pane.Good, string(gl.Yes))
		} else {
			l.Put(pane.Bad, string(gl.No)+" target "+metric.Duration(int64(r.Targets.TTFT)))
		}
		l.Gap(3)
	}
	fact("answer", table.Answer.Value(r, 0), metric.Seconds, targetMark(f, table.Answer, r))
	fact("thinking", r.Thinking, metric.Seconds, "")
	fact("TPOT", r.TPOT, metric.Seconds, targetMark(f, table.TPOT, r))
	fact("E2EL", r.E2EL, metric.Seconds, targetMark(f, table.E2EL, r))
	fact("network", r.RTT, metric.Seconds, " round trip")
	fact("reasoning", r.Reasoning, metric.Count, "")
	fact("prompt", table.Prompt.Value(r, 0), metric.Count, "")
	if r.CachedTokens > 0 {
		l.Gap(-2)
		fact("", event.DerivedValue(float64(r.CachedTokens)), metric.Count, " cached")
	}
	limit := pane.AtLeast("", r.GeneratedAtLeast())
	if r.MaxTokens > 0 {
		limit += "/" + strconv.Itoa(r.MaxTokens)
	}
	fact("generated", table.Generated.Value(r, 0), metric.Count, limit)
	fact("decode", r.DecodeRate, metric.Rate, "/s")
	fact("reasoning", r.ReasoningRate, metric.Rate, "/s")
	fact("answer TPOT", r.AnswerTPOT, metric.Seconds, "")
	if r.Drafted > 0 {
		fact("drafts", event.DerivedValue(float64(r.Accepted)/float64(r.Drafted)), metric.Percent, " of "+metric.Count(float64(r.Drafted))+" accepted")
	}
	itl := func(ns int64) event.Reading {
		if r.ITL.Count == 0 {
			return event.Absent(event.NotYet)
		}
		return event.DerivedValue(float64(ns))
	}
	fact("ITL p50", itl(r.ITL.P50), pane.Nanoseconds, "")
	fact("ITL p99", itl(r.ITL.P99), pane.Nanoseconds, targetMark(f, table.ITL, r))
	fact("ITL max", itl(r.ITL.Max), pane.Nanoseconds, "")
	fact("prefill", r.PrefillRate, metric.Rate, "/s")
}

// targetMark returns a mark for whether a value met its target, "" without a target.
func targetMark(f *pane.Frame, field table.Field, r *store.Request) string {
	target, missed := field.Target(r, r.Closed)
	switch {
	case target <= 0 || field == table.E2EL && r.Cold:
		return ""
	case missed:
		return " " + string(f.Skin.Glyphs.No) + " target " + metric.Duration(int64(target))
	}
	return " " + string(f.Skin.Glyphs.Yes)
}

// tokenWords returns the text of a token in quotes with a sign for newlines, "" if it was not reported.
func tokenWords(f *pane.Frame, t *store.Token) string {
	if t.Text == "" {
		return ""
	}
	return `"` + oneLine(f, t.Text) + `"`
}

// oneLine returns text with a sign for newlines.
func oneLine(f *pane.Frame, raw string) string {
	sign := '↵'
	if f.Skin.Glyphs.ASCII {
		sign = '|'
	}
	out := []rune(sanitize.Text(raw))
	for i, r := range out {
		if r == '\n' {
			out[i] = sign
		}
	}
	return string(out)
}

// LeastGlance is the minimum number of rows left by the table for a glance at the selected request.
const LeastGlance = 16

// DrawGlance draws the beginning of the Request view of the selected request.
func DrawGlance(a grid.Area, s *store.Snapshot, f *pane.Frame, r *store.Request) {
	a.Fill(0, 0, a.W, grid.Fg(theme.Border), f.Skin.Glyphs.Horizontal)
	a.Text(1, 0, grid.Fg(theme.Accent).With(grid.Bold), " "+pane.RequestTitle(f, r)+" ")
	a = a.Sub(0, 1, a.W, a.H-1)
	v := &View{Request: r, Static: true}
	v.ClampSelection()
	left, right := a, a
	if a.W >= 104 {
		w := a.W*58/100 - 2
		left, right = a.Sub(0, 0, w, a.H), a.Sub(w+3, 0, a.W-w-3, a.H)
		used := waterfall(left, s, f, v) + 1
		if left.H-used >= 4 && len(r.Gaps) > 0 {
			gapColumns(left.Sub(0, used, w, min(left.H-used, 20)), f, v)
		}
	} else {
		used := waterfall(left.Sub(0, 0, a.W, a.H-4), s, f, v)
		right = a.Sub(0, used, a.W, a.H-used)
	}
	rows := min(cellRows(f, right.W, r)+1, max(right.H/2, 3))
	tokenCells(right.Sub(0, 0, right.W, rows), f, v, s.Engine.Caps)
	if rest := right.H - rows - 1; rest >= 4 && r.Text != "" {
		tokenText(right.Sub(0, rows+1, right.W, rest), f, v)
	}
}

// noPerRequest is why an engine with aggregate metrics only has no requests.
const noPerRequest = "per-request metrics: not reported by this engine"

// Missing returns why there are no requests, and how to get them; why is "" if the engine reports any, or if llmtop has
// sent some.
func Missing(s *store.Snapshot) (why, advice string) {
	if s.CallsOnly() {
		return store.RequestsUnseen, "to see them, add the SDK to it, or start it behind llmtop proxy"
	}
	if s.NoPerRequest() {
		return noPerRequest, "measure them with " + s.MeasuredBy()
	}
	return "", ""
}

// NoRequest draws why there are no requests.
func NoRequest(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	if f.Waiting(a, s) {
		return
	}
	why, advice := Missing(s)
	if why == "" {
		why, advice = "no request yet", f.Suggest
	}
	f.Absent(a, pane.Dim, why, advice)
}
