package panes

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

func drawText(a grid.Area, s *store.Snapshot, c *Ctx) {
	in, lines, prompt := c.textLines(a, s)
	if lines == nil {
		return
	}
	first := max(len(lines)-in.H, 0)
	drawTextLines(in, lines, first, prompt, s, c)
}

// zoomText draws the whole kept text, scrolled from the end.
func zoomText(a grid.Area, s *store.Snapshot, c *Ctx, scroll *int) {
	in, lines, prompt := c.textLines(a, s)
	if lines == nil {
		return
	}
	last := max(len(lines)-in.H, 0)
	*scroll = min(*scroll, last)
	drawTextLines(in, lines, last-*scroll, prompt, s, c)
}

// textLines draws the box and wraps prompt and text; lines is nil if there is no text, and the pane shows why.
func (c *Ctx) textLines(a grid.Area, s *store.Snapshot) (in grid.Area, lines []string, prompt int) {
	r := s.Current
	if r == nil {
		in = c.frame(a, "generated text")
		if s.AggregateOnly() {
			c.absent(in, dim, "text: not reported by this engine", "")
			return in, nil, 0
		}
		if !c.waiting(in, s) {
			c.absent(in, dim, "no text yet", c.Suggest)
		}
		return in, nil, 0
	}
	in = c.frame(a, textTitle(r, c))
	if !s.Engine.Caps.Has(event.CapText) && r.Text == "" {
		c.absent(in, dim, "text: not reported by this engine", "")
		return in, nil, 0
	}
	c.textFoot(a, r)
	lines, prompt = c.Scratch.Wrapped.Lines(r, in.W)
	return in, lines, prompt
}

func textTitle(r *store.Request, c *Ctx) string {
	sep := " " + string(c.Skin.Glyphs.Bullet) + " "
	words := "#" + strconv.Itoa(int(r.ID))
	if r.Label != "" {
		words += sep + sanitize.Line(r.Label)
	}
	if r.Group != "" {
		words += sep + sanitize.Line(r.Group)
	}
	words += sep + r.State.String()
	if r.State.Final() && r.Reason != "" && r.Reason != r.State.String() {
		words += " (" + sanitize.Line(r.Reason) + ")"
	}
	return words
}

// textFoot writes the progress of the request into the border.
func (c *Ctx) textFoot(a grid.Area, r *store.Request) {
	words := strconv.Itoa(r.PromptTokens) + " prompt, " + strconv.Itoa(r.Generated)
	if r.MaxTokens > 0 {
		words += "/" + strconv.Itoa(r.MaxTokens)
	}
	words += " tokens"
	if r.DecodeRate.OK() {
		words += " at " + metric.Rate(r.DecodeRate.V) + " tok/s"
	}
	c.foot(a, dim, words)
}

func drawTextLines(a grid.Area, lines []string, first, prompt int, s *store.Snapshot, c *Ctx) {
	done := 0
	for _, l := range lines[:first] {
		done += len(l) + 1
	}
	x := 0
	for y, line := range lines[first:min(first+a.H, len(lines))] {
		cut := min(max(prompt-done, 0), len(line))
		x = a.Text(0, y, dim, line[:cut])
		x += a.Text(x, y, data, strings.TrimRight(line[cut:], "\n"))
		done += len(line) + 1
	}
	if s.Current.State == event.StateDispatched && first+a.H >= len(lines) {
		y := len(lines) - 1 - first
		a.Cell(min(x, a.W-1), y, grid.Fg(theme.Accent), c.Skin.Glyphs.Cursor)
	}
}

// firstFitting returns the first of some words that fits into w cells, or the last.
func firstFitting(w int, words ...string) string {
	for _, s := range words {
		if grid.Width(s) <= w {
			return s
		}
	}
	return words[len(words)-1]
}
