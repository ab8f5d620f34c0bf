package request

import (
	"math"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// waterfallSums draws the sum of the parts, the decode time, and the sum of both, and returns the next row.
func waterfallSums(a, bars grid.Area, f *pane.Frame, v *View, x axis, y int, total string) int {
	r, gl := v.Request, f.Skin.Glyphs
	end := stageNames + bars.W + stageTime
	sum := func(name, words string, st grid.Style) {
		a.Text(2, 1+y, pane.Dim, name)
		a.Right(end, 1+y, st, words)
		y++
	}
	switch {
	case r.TTFT.OK():
		sum("= TTFT", total, pane.Loud)
		if r.Targets.TTFT > 0 && !r.Cold {
			st, mark := pane.Good, gl.Yes
			if !r.HitTarget {
				st, mark = pane.Bad, gl.No
			}
			a.Right(end+stageShare, y, pane.Dim, "100 %")
			a.Cell(end+stageShare+1, y, st, mark)
		}
	case y == 0:
		a.Text(2, 1, pane.Dim, "stages: not reported by this engine")
		y++
	case !r.State.Final():
		sum("so far", total, pane.Loud)
	default:
		sum("total", total, pane.Loud)
		a.Text(stageNames, y, pane.StateStyle(r.State), "no first token")
	}
	if r.First == 0 || y >= bars.H-2 {
		return y
	}
	decode, after, words := "+ decode", [][2]float64{x.place(r.First, r.Last)}, metric.Reading(r.Decode, metric.Seconds)
	if r.Thinking.OK() && r.Decode.OK() && y < bars.H-3 {
		var at [][2]float64
		if at, after = thinkingAt(r, x); v.ToEnd {
			drawSpans(bars.Sub(0, y, bars.W, 1), f, at, grid.Fg(theme.SeriesP99), gl.Bar)
		} else {
			bars.Cell(bars.W-1, y, grid.Fg(theme.SeriesP99), gl.Cut)
		}
		sum("+ thinking", metric.Seconds(r.Thinking.V), pane.Data)
		decode, words = "+ answer", metric.Seconds(max(r.Decode.V-r.Thinking.V, 0))
	}
	decodeBar(bars.Sub(0, y, bars.W, 1), f, v, x, after)
	sum(decode, words, pane.Data)
	if r.Paced.OK() && r.Paced.V > 0 {
		a.Right(a.W, y, pane.Dim, "paced "+metric.Seconds(r.Paced.V))
	}
	if r.E2EL.OK() {
		sum("= E2EL", metric.Seconds(r.E2EL.V), pane.Loud)
	}
	return y
}

// thinkingAt returns where a request reasons after its first token, and where it does not.
func thinkingAt(r *store.Request, x axis) (thinking, answer [][2]float64) {
	from := r.First
	for _, p := range r.Spans {
		if p.Stage == event.StageThinking && p.End > from {
			if p.Start > from {
				answer = append(answer, x.place(from, p.Start))
			}
			thinking = append(thinking, x.place(max(p.Start, from), p.End))
			from = p.End
		}
	}
	if from < r.Last {
		answer = append(answer, x.place(from, r.Last))
	}
	return thinking, answer
}

// decodeBar draws the tokens after the first at their places on the axis, each cell in the colour of its longest gap. If the
// axis ends with the first token, it draws only a continuation mark.
func decodeBar(bar grid.Area, f *pane.Frame, v *View, x axis, tokens [][2]float64) {
	r := v.Request
	if !v.ToEnd {
		bar.Cell(bar.W-1, 0, grid.Fg(theme.SeriesDecode), f.Skin.Glyphs.Cut)
		return
	}
	drawSpans(bar, f, tokens, grid.Fg(theme.SeriesP50), f.Skin.Glyphs.Bar)
	median := float64(r.ITL.P50)
	for _, t := range r.Tokens {
		if t.Reasoning > 0 && r.Thinking.OK() {
			continue
		}
		if ratio := float64(t.Gap) / median; median > 0 && ratio >= pane.SlowGap {
			at := min(int(x.place(t.At, t.At)[1]*float64(bar.W)), bar.W-1)
			bar.Cell(at, 0, pane.GapStyle(ratio), f.Skin.Glyphs.Bar)
		}
	}
}

// drawTimeAxis labels an axis of span ns in round steps, as many as fit.
func drawTimeAxis(a grid.Area, span float64) {
	const room = 11 // width of a label
	if span <= 0 || a.W < 2*room {
		return
	}
	step := math.Pow(10, math.Floor(math.Log10(span*room/float64(a.W))))
	for _, m := range [...]float64{1, 2, 5, 10} {
		if step*m/span*float64(a.W) >= room {
			step *= m
			break
		}
	}
	write := pane.AxisLabel(pane.TimeAxis, span)
	for v := 0.0; v <= span; v += step {
		x := int(v / span * float64(a.W))
		words := write(v, step)
		if x+grid.Width(words)+1 <= a.W {
			a.Cell(x, 0, grid.Fg(theme.Border), '|')
			a.Text(x+1, 0, pane.Dim, words)
		}
	}
}
