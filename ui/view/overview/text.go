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
	"github.com/llmtop/llmtop/ui/sanitize"
)

func drawText(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in, lines, prompt := textLines(a, s, f)
	if lines == nil {
		return
	}
	first := max(len(lines)-in.H, 0)
	drawTextLines(in, s, f, lines, first, prompt)
}

// zoomText draws the whole kept text, scrolled from the end.
func zoomText(a grid.Area, s *store.Snapshot, f *pane.Frame, scroll *int) {
	in, lines, prompt := textLines(a, s, f)
	if lines == nil {
		return
	}
	last := max(len(lines)-in.H, 0)
	*scroll = min(*scroll, last)
	drawTextLines(in, s, f, lines, last-*scroll, prompt)
}

// textLines draws the box and wraps prompt and text; lines is nil if there is no text, and the pane shows why.
func textLines(a grid.Area, s *store.Snapshot, f *pane.Frame) (in grid.Area, lines []string, prompt int) {
	r := s.Current
	if r == nil {
		in = f.Box(a, "generated text")
		if !f.Waiting(in, s) {
			f.Absent(in, pane.Dim, "no text yet", f.Suggest)
		}
		return in, nil, 0
	}
	in = f.Box(a, pane.RequestTitle(f, r))
	textFoot(a, f, r)
	if r.Prompt == "" && r.Text == "" && (r.Generated > 0 && !s.Engine.Caps.Has(event.CapText) || f.NoText != "") {
		f.Absent(in, pane.Dim, "no text", f.TextAbsence(s))
		return in, nil, 0
	}
	lines, prompt = wrapped(r, in.W)
	return in, lines, prompt
}

// textFoot writes the progress of the request into the border.
func textFoot(a grid.Area, f *pane.Frame, r *store.Request) {
	words := metric.Plural(r.Generated, "token")
	if r.MaxTokens > 0 || r.GeneratedAtLeast() {
		words = pane.AtLeast(strconv.Itoa(r.Generated), r.GeneratedAtLeast())
		if r.MaxTokens > 0 {
			words += "/" + strconv.Itoa(r.MaxTokens)
		}
		words += " tokens"
	}
	if r.PromptTokens > 0 {
		words = strconv.Itoa(r.PromptTokens) + " prompt, " + words
	}
	if r.DecodeRate.OK() {
		words += " at " + metric.Rate(r.DecodeRate.V) + " tok/s"
	}
	f.Foot(a, pane.Dim, words)
}

func drawTextLines(a grid.Area, s *store.Snapshot, f *pane.Frame, lines []string, first, prompt int) {
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
		a.Cell(min(x, a.W-1), y, grid.Fg(theme.Accent), f.Skin.Glyphs.Cursor)
	}
}

// wrapped returns the lines of prompt and text, w cells wide, and the number of bytes that belong to the prompt. One line
// may hold the end of the prompt and the start of the text.
func wrapped(r *store.Request, w int) (lines []string, prompt int) {
	before, body := sanitize.Text(r.Prompt), sanitize.Partial(r.Text, r.TextCut)
	if r.TextCut {
		body = "… " + body
	}
	if lines = grid.Wrap(nil, before+body, w); len(lines) == 0 {
		lines = append(lines, "")
	}
	return lines, len(before)
}
