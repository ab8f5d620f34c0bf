package panes

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
)

// reportedTPOT fills the TPOT pane for an engine that is known in sum: what it counts of each duration, or else how fast the requests were that
// were seen in its slots.
func (c *Ctx) reportedTPOT(a grid.Area, s *store.Snapshot) {
	if len(s.Reported.Spans) > 0 {
		in := c.frame(a, "as the engine counts them, "+c.Window.String())
		n := c.reportedTable(in, s)
		rest := in.Sub(0, n+1, in.W, in.H-n-1)
		if polled(s) > 0 {
			c.polledTable(rest, s)
			return
		}
		c.titledRates(rest, s)
		return
	}
	if polled(s) > 0 {
		in := c.frame(a, "by how far requests were at two looks, newest first", "newest first")
		if c.probeLine(in, 0, s) {
			in = in.Sub(0, 2, in.W, in.H-2)
		}
		c.polledTable(in, s)
		return
	}
	in := c.frame(a, "as the engine counts them")
	if c.probeLine(in, 0, s) {
		return
	}
	c.absent(in, dim, "single tokens: not reported by this engine", "the proxy (llmtop proxy) would measure them")
}

// polled is how many of the requests were seen in slots.
func polled(s *store.Snapshot) (n int) {
	for _, r := range s.Requests {
		if r.Polled {
			n++
		}
	}
	return n
}

// polledTable lists the requests that were seen in slots. TPOT is the time between two looks by the tokens between them.
func (c *Ctx) polledTable(a grid.Area, s *store.Snapshot) {
	const names, col = 8, 9
	heads := [...]string{"TPOT", "tok/s", "tokens", "prompt", "cached", "slot"}
	for i, h := range heads {
		if x := names + (i+1)*col; x <= a.W {
			a.Right(x, 0, head, h)
		}
	}
	y := 1
	for _, r := range s.Requests {
		if !r.Polled || y >= a.H {
			continue
		}
		st := text
		if r.State.Final() {
			st = dim
		}
		a.Text(0, y, st, "#"+itoa(int(r.ID)))
		cells := [...]string{
			shortly(r.TPOT, metric.Seconds), shortly(r.DecodeRate, metric.Rate), atLeast(r), itoa(max(r.PromptTokens, r.PromptDone)), itoa(r.CachedTokens), itoa(r.Slot),
		}
		for i, words := range cells {
			use := st
			if i < 2 && !r.State.Final() {
				use = data
			}
			if x := names + (i+1)*col; x <= a.W {
				a.Right(x, y, use, words)
			}
		}
		y++
	}
}

// atLeast is how many tokens a request has generated: of one that was seen in a slot, and ended after that look, as many or more.
func atLeast(r *store.Request) string {
	if r.Polled && r.State.Final() {
		return itoa(r.Generated) + "+"
	}
	return itoa(r.Generated)
}

// shortly is a reading in a narrow column, a dash where there is none.
func shortly(r event.Reading, f func(float64) string) string {
	if !r.OK() {
		return "-"
	}
	return f(r.V)
}
