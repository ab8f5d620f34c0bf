package overview

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

func drawText(a grid.Area, s *store.Snapshot, c *pane.Frame) {
	in, lines, prompt := textLines(c, a, s)
	if lines == nil {
		return
	}
	first := max(len(lines)-in.H, 0)
	drawTextLines(in, lines, first, prompt, s, c)
}

// zoomText draws the whole kept text, scrolled from the end.
func zoomText(a grid.Area, s *store.Snapshot, c *pane.Frame, scroll *int) {
	in, lines, prompt := textLines(c, a, s)
	if lines == nil {
		return
	}
	last := max(len(lines)-in.H, 0)
	*scroll = min(*scroll, last)
	drawTextLines(in, lines, last-*scroll, prompt, s, c)
}

// textLines draws the box and wraps prompt and text; lines is nil if there is no text, and the pane shows why.
func textLines(c *pane.Frame, a grid.Area, s *store.Snapshot) (in grid.Area, lines []string, prompt int) {
	r := s.Current
	if r == nil {
		in = c.Box(a, "generated text")
		if s.Aggregates != nil && !s.Engine.Caps.Has(event.CapTokens) { // no recording has more
			c.Absent(in, pane.Dim, "text: not reported by this engine", "")
			return in, nil, 0
		}
		if !c.Waiting(in, s) {
			c.Absent(in, pane.Dim, "no text yet", c.Suggest)
		}
		return in, nil, 0
	}
	in = c.Box(a, pane.RequestTitle(r, c))
	if !s.Engine.Caps.Has(event.CapText) && r.Text == "" {
		c.Absent(in, pane.Dim, "text: "+c.TextAbsence(s), "")
		return in, nil, 0
	}
	textFoot(c, a, r)
	lines, prompt = c.Scratch.Wrapped.Lines(r, in.W)
	return in, lines, prompt
}

// textFoot writes the progress of the request into the border.
func textFoot(c *pane.Frame, a grid.Area, r *store.Request) {
	words := strconv.Itoa(r.PromptTokens) + " prompt, " + strconv.Itoa(r.Generated)
	if r.MaxTokens > 0 {
		words += "/" + strconv.Itoa(r.MaxTokens)
	}
	words += " tokens"
	if r.DecodeRate.OK() {
		words += " at " + metric.Rate(r.DecodeRate.V) + " tok/s"
	}
	c.Foot(a, pane.Dim, words)
}

func drawTextLines(a grid.Area, lines []string, first, prompt int, s *store.Snapshot, c *pane.Frame) {
	done := 0
	for _, l := range lines[:first] {
		done += len(l) + 1
	}
	x := 0
	for y, line := range lines[first:min(first+a.H, len(lines))] {
		cut := min(max(prompt-done, 0), len(line))
		x = a.Text(0, y, pane.Dim, line[:cut])
		x += a.Text(x, y, pane.Data, strings.TrimRight(line[cut:], "\n"))
		done += len(line) + 1
	}
	if s.Current.State == event.StateDispatched && first+a.H >= len(lines) {
		y := len(lines) - 1 - first
		a.Cell(min(x, a.W-1), y, grid.Fg(theme.Accent), c.Skin.Glyphs.Cursor)
	}
}
