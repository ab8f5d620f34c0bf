package panes

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// textKey names the text that was wrapped last, so that it is wrapped again only when it grew.
type textKey struct {
	id     event.RequestID
	length int
	width  int
}

func drawText(a grid.Area, s *store.Snapshot, c *Ctx) {
	in, lines, prompt := c.textLines(a, s)
	if lines == nil {
		return
	}
	first := max(len(lines)-in.H, 0)
	drawTextLines(in, lines, first, prompt, s, c)
}

// zoomText shows the whole text that is kept, scrolled from the end.
func zoomText(a grid.Area, s *store.Snapshot, c *Ctx) {
	in, lines, prompt := c.textLines(a, s)
	if lines == nil {
		return
	}
	last := max(len(lines)-in.H, 0)
	c.Scroll = min(c.Scroll, last)
	drawTextLines(in, lines, last-c.Scroll, prompt, s, c)
}

// textLines draws the box and wraps prompt and text; nil if there is no text, which is then said.
func (c *Ctx) textLines(a grid.Area, s *store.Snapshot) (in grid.Area, lines []string, prompt int) {
	r := s.Current
	if r == nil {
		in = c.frame(a, "as it is generated")
		if s.OnlySums() {
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
	lines, prompt = c.wrapped(r, in.W)
	return in, lines, prompt
}

func textTitle(r *store.Request, c *Ctx) string {
	sep := " " + string(c.Skin.Glyphs.Bullet) + " "
	words := "#" + itoa(int(r.ID))
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

// textFoot writes how far the request has come into the border.
func (c *Ctx) textFoot(a grid.Area, r *store.Request) {
	words := itoa(r.PromptTokens) + " prompt, " + itoa(r.Generated)
	if r.MaxTokens > 0 {
		words += "/" + itoa(r.MaxTokens)
	}
	words += " tokens"
	if r.DecodeRate.OK() {
		words += " at " + metric.Rate(r.DecodeRate.V) + " tok/s"
	}
	c.foot(a, dim, words)
}

// wrapped are the lines of prompt and text, and how many of their bytes are the prompt's. Lines are parts of one string, so
// that a line may hold the end of one and the beginning of the other.
func (c *Ctx) wrapped(r *store.Request, w int) ([]string, int) {
	m := c.Memory
	key := textKey{r.ID, len(r.Prompt) + len(r.Text), w}
	prompt := sanitize.Text(r.Prompt)
	if m.lineKey != key || len(m.lines) == 0 {
		body := sanitize.Partial(r.Text, r.TextCut)
		if r.TextCut {
			body = "… " + body
		}
		m.lineKey, m.lines = key, grid.Wrap(m.lines[:0], prompt+body, w)
		if len(m.lines) == 0 {
			m.lines = append(m.lines, "")
		}
	}
	return m.lines, len(prompt)
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
