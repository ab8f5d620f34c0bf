package panes

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// severity is the glyph and the colour of a verdict.
func (c *Ctx) severity(v verdict.Severity) (rune, grid.Style) {
	gl := c.Skin.Glyphs
	switch v {
	case verdict.Good:
		return gl.Good, good
	case verdict.Watch:
		return gl.Watch, watch
	case verdict.Bad:
		return gl.Bad, bad
	}
	return gl.Info, grid.Fg(theme.Accent)
}

func drawKnow(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "")
	if c.failed(in, s) {
		return
	}
	if n := c.drawNotes(in, s); n > 0 {
		in = in.Sub(0, n, in.W, in.H-n)
	}
	if len(s.Verdicts) == 0 {
		switch {
		case c.waiting(in, s):
		case s.OnlySums() && len(s.Log) > 0: // what watching it had to say
			y := 0
			for _, line := range grid.Wrap(nil, c.nothingToSay(s), in.W) {
				in.Text(0, y, dim, line)
				y++
			}
			c.log(in.Sub(0, y+1, in.W, in.H-y-1), s)
		default:
			c.absent(in, dim, c.nothingToSay(s), "")
		}
		return
	}
	spare := in.H - c.rowsOf(in, s) // rows for evidence and advice, which the first verdicts get
	y, shown := 0, 0
	for _, v := range s.Verdicts {
		lines, plain := c.verdictLines(v, in.W, true)
		more := len(lines) - plain
		full := more <= spare
		if full {
			spare -= more
		}
		n := c.verdict(in, y, v, full)
		if n == 0 {
			break
		}
		y += n
		if full && spare > 0 {
			y++
			spare--
		}
		shown++
	}
	if rest := len(s.Verdicts) - shown; rest > 0 {
		c.foot(a, dim, itoa(rest)+" more: zoom to see")
	}
}

// nothingToSay is why there is no verdict.
func (c *Ctx) nothingToSay(s *store.Snapshot) string {
	if s.OnlySums() {
		if r := s.Reported; !r.Running.OK() && len(r.Spans) == 0 && !r.Decode.OK() {
			return "nothing to say: this server tells too little of its requests. A probe (llmtop attach --probe) or the proxy (llmtop proxy) would measure them"
		}
		return "nothing to say yet: verdicts need a few requests"
	}
	return "nothing to say yet: verdicts need a few tokens"
}

// rowsOf is how many rows the verdicts take without evidence and advice.
func (c *Ctx) rowsOf(a grid.Area, s *store.Snapshot) (n int) {
	for _, v := range s.Verdicts {
		lines, _ := c.verdictLines(v, a.W, false)
		n += len(lines)
	}
	return n
}

// failed fills the pane with the reason of a failed engine.
func (c *Ctx) failed(a grid.Area, s *store.Snapshot) bool {
	if s.Engine.State != event.EngineFailed {
		return false
	}
	y := 0
	for _, line := range grid.Wrap(nil, string(c.Skin.Glyphs.Failed)+" engine failed: "+sanitize.Line(s.Engine.Reason), a.W) {
		a.Text(0, y, bad, line)
		y++
	}
	for i := len(s.Log) - 1; i >= 0 && y < a.H; i-- {
		a.Elide(0, y, a.W, dim, sanitize.Line(s.Log[i].Text), c.Skin.Glyphs.Ellipsis)
		y++
	}
	return true
}

// verdictLines wraps a verdict; the lines from plain on are evidence and advice, which the full form adds.
func (c *Ctx) verdictLines(v verdict.Verdict, w int, full bool) (lines []string, plain int) {
	lines = grid.Wrap(c.Memory.verdict[:0], sanitize.Line(v.Text), w-2)
	plain = len(lines)
	if full && v.Evidence != "" {
		lines = grid.Wrap(lines, sanitize.Line(v.Evidence), w-2)
	}
	if full && v.Try != "" {
		lines = grid.Wrap(lines, string(c.Skin.Glyphs.Arrow)+" "+sanitize.Line(v.Try), w-2)
	}
	c.Memory.verdict = lines
	return lines, plain
}

// verdict draws one finding from row y and returns the rows it took, 0 if it does not fit whole.
func (c *Ctx) verdict(a grid.Area, y int, v verdict.Verdict, full bool) int {
	mark, st := c.severity(v.Severity)
	lines, plain := c.verdictLines(v, a.W, full)
	if y+len(lines) > a.H && y > 0 {
		return 0
	}
	a.Cell(0, y, st.With(grid.Bold), mark)
	for i, line := range lines {
		use := text
		if i >= plain {
			use = dim
		} else if v.Severity >= verdict.Watch {
			use = data
		}
		a.Text(2, y+i, use, line)
	}
	return len(lines)
}

// zoomKnow shows every verdict with its evidence and advice, and below them the engine's log.
func zoomKnow(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "measured, the limit it is held against, what to try")
	if c.failed(in, s) {
		return
	}
	c.Scroll = min(c.Scroll, max(len(s.Verdicts)-1, 0))
	y := c.drawNotes(in, s)
	for _, v := range s.Verdicts[c.Scroll:] {
		n := c.verdict(in, y, v, true)
		if n == 0 {
			c.foot(a, dim, "more below")
			return
		}
		y += n + 1
	}
	if len(s.Verdicts) == 0 {
		in.Text(0, y, dim, c.nothingToSay(s))
		y += 2
	}
	c.log(in.Sub(0, y, in.W, in.H-y), s)
}

// log shows the last lines of the engine's log.
func (c *Ctx) log(a grid.Area, s *store.Snapshot) {
	if a.H < 2 {
		return
	}
	a.Text(0, 0, head, "Engine log")
	if len(s.Log) == 0 {
		a.Text(0, 1, dim, "no line yet")
	}
	lines := s.Log[max(len(s.Log)-(a.H-1), 0):]
	for i, l := range lines {
		a.Text(0, 1+i, dim, clock(since(s, l.At)))
		a.Elide(10, 1+i, a.W-10, text, sanitize.Line(l.Text), c.Skin.Glyphs.Ellipsis)
	}
}
