// Package polled draws engines that report aggregate metrics, by polls: histograms, slots, probes, the start of the model
// and where each metric comes from.
package polled

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// DrawITL draws the ITL pane of an engine with aggregate metrics, titled by what it shows: its latency histograms, or
// else the TPOT of the requests polled from its slots.
func DrawITL(a grid.Area, s *store.Snapshot, c *pane.Frame) {
	if len(s.Aggregates.Histograms) > 0 {
		c.Title = "Latency"
		in := c.Box(a, "engine histograms, "+c.Window.String())
		n := histogramTable(c, in, s)
		rest := in.Sub(0, n+1, in.W, in.H-n-1)
		if polledCount(s) > 0 {
			polledTable(c, rest, s)
			return
		}
		if !drawTrends(c, rest, s) {
			ratesIfRoom(c, rest, s)
		}
		return
	}
	if polledCount(s) > 0 {
		c.Title = "TPOT"
		in := c.Box(a, "from slot progress between two polls, newest first", "newest first")
		if probeLine(c, in, 0, s) {
			in = in.Sub(0, 2, in.W, in.H-2)
		}
		polledTable(c, in, s)
		return
	}
	if s.Probes().Last != nil {
		c.Title = "Latency"
	}
	in := c.Box(a, "")
	if probeLine(c, in, 0, s) {
		return
	}
	c.Absent(in, pane.Dim, "ITL: not reported by this engine", "measure it with llmtop proxy")
}

// polledCount returns the number of requests polled from slots.
func polledCount(s *store.Snapshot) (n int) {
	for _, r := range s.Requests {
		if r.Polled {
			n++
		}
	}
	return n
}

// polledTable lists the requests polled from slots. Their TPOT is the time between two polls divided by the tokens
// between them.
func polledTable(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	const names, col = 8, 9
	heads := [...]string{"TPOT", "tok/s", "tokens", "prompt", "cached", "slot"}
	for i, h := range heads {
		if x := names + (i+1)*col; x <= a.W {
			a.Right(x, 0, pane.Heading, h)
		}
	}
	models := a.Sub(names+len(heads)*col+2, 0, a.W-names-len(heads)*col-2, a.H)
	if models.W < 8 || len(s.Aggregates.Models) < 2 {
		models = grid.Area{}
	}
	models.Text(0, 0, pane.Heading, "model")
	y := 1
	for _, r := range s.Requests {
		if !r.Polled || y >= a.H {
			continue
		}
		models.Elide(0, y, models.W, pane.Dim, sanitize.Line(r.Model), c.Skin.Glyphs.Ellipsis)
		st := pane.Plain
		if r.State.Final() {
			st = pane.Dim
		}
		a.Text(0, y, st, "#"+strconv.Itoa(int(r.ID)))
		cells := [...]string{
			readingOrDash(r.TPOT, metric.Seconds), readingOrDash(r.DecodeRate, metric.Rate), generatedCount(r), strconv.Itoa(max(r.PromptTokens, r.PromptDone)), strconv.Itoa(r.CachedTokens), strconv.Itoa(r.Slot),
		}
		for i, words := range cells {
			use := st
			if i < 2 && !r.State.Final() {
				use = pane.Data
			}
			if x := names + (i+1)*col; x <= a.W {
				a.Right(x, y, use, words)
			}
		}
		y++
	}
}

// generatedCount formats the generated tokens of a request. For a polled request that ended after its last poll they
// are a lower bound.
func generatedCount(r *store.Request) string {
	if r.Polled && r.State.Final() {
		return strconv.Itoa(r.Generated) + "+"
	}
	return strconv.Itoa(r.Generated)
}

// readingOrDash formats a reading for a narrow column, absent ones as a dash.
func readingOrDash(r event.Reading, f func(float64) string) string {
	if !r.OK() {
		return "-"
	}
	return f(r.V)
}
