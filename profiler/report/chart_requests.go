package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
)

// The charts of single requests use the width of the page.
const (
	wideWidth   = 1080
	maxLanes    = 24   // of requests in the timeline
	maxDrawn    = 400  // requests in the timeline: the newest
	maxSlowest  = 10   // requests in the waterfall
	maxCells    = 1024 // tokens that are coloured
	cellsPerRow = 64
	seriesBins  = 120
	nameSpace   = 32 // least width of a request with its number
)

// span is a request from its enqueueing to its last token, in s since the session began.
type span struct {
	*Request
	from, first, to float64 // first is to if there was no token
}

// spans returns the requests with known times, in the order of their beginning.
func spans(r *Report) (out []span) {
	for i := range r.Requests {
		q := &r.Requests[i]
		if q.Polled || !q.Enqueued.OK() || !q.E2EL.OK() && !q.TTFT.OK() {
			continue
		}
		s := span{Request: q, from: q.Enqueued.V}
		s.to = s.from + max(q.E2EL.V+q.Paced.V, q.TTFT.V) // E2EL excludes deliberate waits
		s.first = s.to
		if q.TTFT.OK() {
			s.first = s.from + q.TTFT.V
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return out
}

// begins returns when the request left the queue, and when the work on its first token began: what no component of TTFT
// explains lies between them.
func (s *span) begins() (left, work float64) {
	left, work = s.from, s.first
	for _, p := range s.Parts {
		switch p.Name {
		case "queue", "paced_by_others":
			left += p.Time.V
		case "other":
		default:
			work -= p.Time.V
		}
	}
	return min(left, s.first), max(work, min(left, s.first))
}

// name describes the request in a label.
func (s *span) name() string {
	if s.Label != "" {
		return fmt.Sprintf("#%d %s", s.ID, s.Label)
	}
	return fmt.Sprintf("#%d", s.ID)
}

// box adds a box of a stage to a lane.
func (c *chart) box(class string, x, y, w float64, hint string) {
	if !(w > 0) {
		return
	}
	c.Boxes = append(c.Boxes, mark{Class: class, X: x, Y: y, W: max(w, 0.5), H: barHeight - 4, Text: clean.Line(hint)})
}

// timelineChart draws who was in the queue, in prefill and decoding when, with stalls. Requests share a lane if they do
// not overlap.
func timelineChart(r *Report) chart {
	c := chart{Title: "Timeline", Wide: true, Width: wideWidth, Height: 4, Key: [][2]string{{"queue", "queue"}, {"other", "other"}, {"prompt", "until the first token"}, {"decode", "decode"}, {"stall", "stall"}}}
	all := spans(r)
	left := max(len(all)-maxDrawn, 0)
	all = all[left:]
	if len(all) == 0 {
		return c
	}
	from, to := all[0].from, 0.0
	for _, s := range all {
		to = max(to, s.to)
	}
	x := func(t float64) float64 { return (t - from) / max(to-from, 1e-9) * (wideWidth - 20) }
	var lanes []float64 // when each ends
	for i := range all {
		s := &all[i]
		lane := slices.IndexFunc(lanes, func(end float64) bool { return end <= s.from })
		if lane < 0 {
			if len(lanes) == maxLanes {
				left++
				continue
			}
			lanes, lane = append(lanes, 0), len(lanes)
		}
		lanes[lane] = s.to
		y := 4 + float64(lane)*barHeight
		out, work := s.begins()
		c.box("queue", 10+x(s.from), y, x(out)-x(s.from), fmt.Sprintf("%s: queue %s", s.name(), metric.Seconds(out-s.from)))
		c.box("other", 10+x(out), y, x(work)-x(out), fmt.Sprintf("%s: other %s", s.name(), metric.Seconds(work-out)))
		c.box("prompt", 10+x(work), y, x(s.first)-x(work), fmt.Sprintf("%s: TTFT %s", s.name(), metric.Seconds(s.first-s.from)))
		c.box("decode", 10+x(s.first), y, x(s.to)-x(s.first), fmt.Sprintf("%s: %d tokens in %s", s.name(), s.Generated, metric.Seconds(s.to-s.first)))
		if name := fmt.Sprintf("#%d", s.ID); x(s.to)-x(s.from) > nameSpace {
			c.text("name", "start", 13+x(s.from), y+11, name)
		}
		for _, st := range s.Stalls {
			if st.At.OK() && st.Gap.OK() {
				at := s.from + st.At.V - st.Gap.V
				c.box("stall", 10+x(at), y, x(at+st.Gap.V)-x(at), fmt.Sprintf("%s: stall of %s, %s", s.name(), metric.Seconds(st.Gap.V), st.Cause.Text))
			}
		}
	}
	base := 8 + float64(len(lanes))*barHeight
	c.axis(base, to-from)
	if left > 0 {
		c.Note = fmt.Sprintf("%d requests not drawn", left)
	}
	return c
}

// axis draws an axis of time below a wide chart.
func (c *chart) axis(y, seconds float64) {
	for i := range 5 {
		anchor := [...]string{"start", "middle", "middle", "middle", "end"}[i]
		c.text("", anchor, 10+float64(i)*(wideWidth-20)/4, y+14, metric.Seconds(seconds*float64(i)/4))
	}
	c.Height, c.Axis = y+20, y
}

// slowestChart draws the requests with the longest TTFT, in its components.
func slowestChart(r *Report) chart {
	c := chart{Title: "Slowest requests", Note: "by TTFT, in its components", Wide: true, Width: wideWidth}
	all := slices.DeleteFunc(spans(r), func(s span) bool { return !s.TTFT.OK() || s.Probe || s.Cold || len(s.Parts) == 0 })
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(b.TTFT.V, a.TTFT.V) })
	all = all[:min(len(all), maxSlowest)]
	named := map[string]bool{}
	for i := range all {
		s := &all[i]
		y, x := c.Height, float64(nameWidth)
		c.text("", "end", nameWidth-8, y+barHeight-5, s.name())
		for _, p := range s.Parts {
			w := p.Time.V / all[0].TTFT.V * (wideWidth - nameWidth - valueSpace)
			if !(w > 0) {
				continue
			}
			c.Boxes = append(c.Boxes, mark{Class: p.Name, X: x, Y: y, W: w, H: barHeight, Text: clean.Line(fmt.Sprintf("%s: %s %s", s.name(), words(p.Name), metric.Seconds(p.Time.V)))})
			x += w
			if !named[p.Name] {
				named[p.Name] = true
				c.Key = append(c.Key, [2]string{p.Name, words(p.Name)})
			}
		}
		c.text("value", "start", x+6, y+barHeight-5, metric.Seconds(s.TTFT.V))
		c.Height += rowHeight
	}
	return c
}

// words writes the name of a component as words.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// tokensChart colours the tokens of the request with the slowest token by their gaps.
func tokensChart(r *Report) chart {
	c := chart{Title: "Tokens by gap", Wide: true, Width: wideWidth, Height: 4}
	var slowest *Request
	worst := 0.0
	for i := range r.Requests {
		for _, t := range r.Requests[i].Tokens {
			if v, ok := t.Gap.Positive(); ok && v > worst {
				slowest, worst = &r.Requests[i], v
			}
		}
	}
	if slowest == nil || slowest.ITL == nil || !(slowest.ITL.P50.V > 0) {
		return c
	}
	median := slowest.ITL.P50.V
	c.Note = fmt.Sprintf("request #%d, which has the slowest token; darkest: 8 times its median gap of %s", slowest.ID, metric.Seconds(median))
	shown := slowest.Tokens[:min(len(slowest.Tokens), maxCells)]
	if n := len(slowest.Tokens) - len(shown); n > 0 {
		c.Note += fmt.Sprintf("; %d more tokens not drawn", n)
	}
	const size = (wideWidth - 20.0) / cellsPerRow
	for i, t := range shown {
		hint, depth := fmt.Sprintf("token %d: first", t.Index), 0.05
		if t.Gap.OK() {
			hint = fmt.Sprintf("token %d: %s", t.Index, metric.Seconds(t.Gap.V))
			depth = min(max(math.Log2(t.Gap.V/median)+1, 0.2)/4, 1)
		}
		if t.Text != nil {
			hint += " " + *t.Text
		}
		c.Boxes = append(c.Boxes, mark{
			Fill: fmt.Sprintf("rgba(207,34,46,%.2f)", depth), X: 10 + float64(i%cellsPerRow)*size, Y: 4 + float64(i/cellsPerRow)*size, W: size - 1, H: size - 1, Text: clean.Line(hint),
		})
	}
	c.Height = 8 + float64((len(shown)+cellsPerRow-1)/cellsPerRow)*size
	return c
}

// seriesChart draws the tokens per second of all requests over the session.
func seriesChart(r *Report) chart {
	c := chart{Title: "Output tokens/s over time", Wide: true, Width: wideWidth}
	all := spans(r)
	if len(all) == 0 {
		return c
	}
	from, to := all[0].from, 0.0
	for _, s := range all {
		to = max(to, s.to)
	}
	width := (to - from) / seriesBins
	if !(width > 0) {
		return c
	}
	var bins [seriesBins]float64
	for _, s := range all {
		for _, t := range s.Tokens {
			if at := int((s.from + t.At.V - from) / width); t.At.OK() && at >= 0 {
				bins[min(at, seriesBins-1)] += float64(max(t.N, 1)) / width
			}
		}
	}
	most := slices.Max(bins[:])
	if !(most > 0) {
		return c
	}
	const height = 110.0
	for i, rate := range bins {
		if h := rate / most * height; h > 0 {
			c.Boxes = append(c.Boxes, mark{
				Class: "bar", X: 10 + float64(i)*(wideWidth-20)/seriesBins, Y: 4 + height - h, W: (wideWidth-20.0)/seriesBins - 1, H: h,
				Text: fmt.Sprintf("%s: %s tokens/s", metric.Seconds(float64(i)*width), metric.Rate(rate)),
			})
		}
	}
	c.Note = "highest: " + metric.Rate(most) + " in " + metric.Seconds(width)
	c.axis(4+height, to-from)
	return c
}
