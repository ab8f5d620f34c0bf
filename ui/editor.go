package ui

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// maxPrompt bounds a typed or pasted prompt, in characters.
const maxPrompt = 1 << 16

// maxHistory bounds how many prompts the editor remembers.
const maxHistory = 100

// editor is the line in which a prompt is typed. Newlines that are pasted stay in it and are shown as a sign.
type editor struct {
	open    bool
	text    []rune
	at      int // cursor, in runes
	history []string
	past    int    // place in the history, len(history) is the new line
	draft   string // what was typed before the history was looked at
	suggest []SuggestedPrompt
	next    int // suggestion that tab shows next
	label   string
}

// show opens the editor empty.
func (e *editor) show() {
	e.open, e.text, e.at, e.label, e.past = true, e.text[:0], 0, "", len(e.history)
}

// set replaces the text and puts the cursor at its end.
func (e *editor) set(s, label string) {
	e.text = append(e.text[:0], []rune(s)...)
	e.text = e.text[:min(len(e.text), maxPrompt)]
	e.at, e.label = len(e.text), label
}

// insert puts text at the cursor, with line ends of any system as newlines and without other control codes.
func (e *editor) insert(s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	var in []rune
	for _, r := range s {
		if r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r >= 0xa0) {
			in = append(in, r)
		}
	}
	in = in[:min(len(in), maxPrompt-len(e.text))]
	e.text = slices.Insert(e.text, e.at, in...)
	e.at += len(in)
	e.label = ""
}

// key handles one editing key and reports whether the prompt was sent.
func (e *editor) key(name, text string) (sent bool) {
	switch name {
	case "enter":
		return strings.TrimSpace(string(e.text)) != ""
	case "esc", "ctrl+c":
		e.open = false
	case "tab":
		e.suggestNext(1)
	case "shift+tab":
		e.suggestNext(-1)
	case "up", "ctrl+p":
		e.recall(-1)
	case "down", "ctrl+n":
		e.recall(1)
	default:
		e.edit(name, text)
	}
	return false
}

// edit handles the keys that move the cursor and change the text.
func (e *editor) edit(name, text string) {
	switch name {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.text))
	case "home", "ctrl+a":
		e.at = 0
	case "end", "ctrl+e":
		e.at = len(e.text)
	case "backspace", "ctrl+h":
		e.remove(e.at-1, e.at)
	case "delete", "ctrl+d":
		e.remove(e.at, e.at+1)
	case "ctrl+u":
		e.remove(0, e.at)
	case "ctrl+k":
		e.remove(e.at, len(e.text))
	case "ctrl+w":
		from := e.at
		for from > 0 && e.text[from-1] == ' ' {
			from--
		}
		for from > 0 && e.text[from-1] != ' ' {
			from--
		}
		e.remove(from, e.at)
	default:
		e.insert(text)
	}
}

func (e *editor) remove(from, to int) {
	from, to = max(from, 0), min(to, len(e.text))
	if from < to {
		e.text = slices.Delete(e.text, from, to)
		e.at, e.label = from, ""
	}
}

// recall moves through the history; beyond its newest entry lies what was being typed.
func (e *editor) recall(step int) {
	if e.past == len(e.history) {
		e.draft = string(e.text)
	}
	to := e.past + step
	switch {
	case to < 0 || to > len(e.history):
		return
	case to == len(e.history):
		e.set(e.draft, "")
	default:
		e.set(e.history[to], "")
	}
	e.past = to
}

// suggestNext shows the next built-in prompt.
func (e *editor) suggestNext(step int) {
	n := len(e.suggest)
	if n == 0 {
		return
	}
	if step < 0 {
		e.next = (e.next + 2*n - 2) % n
	}
	p := e.suggest[e.next%n]
	e.set(p.Text, p.Label)
	e.next = (e.next + 1) % n
}

// take returns the prompt with its label, remembers it and closes the editor.
func (e *editor) take() (text, label string) {
	text, label = string(e.text), e.label
	if n := len(e.history); n == 0 || e.history[n-1] != text {
		e.history = append(e.history, text)
		e.history = e.history[max(len(e.history)-maxHistory, 0):]
	}
	e.open = false
	return text, label
}

// draw draws the editor over the lower end of the screen, scrolled so that the cursor shows.
func (e *editor) draw(a grid.Area, skin *theme.Skin) {
	gl := skin.Glyphs
	box := a.Sub(0, a.H-3, a.W, 3)
	edge := grid.Fg(theme.BorderFocus)
	for y := range box.H {
		box.Fill(0, y, box.W, edge, ' ')
	}
	box.Frame(edge, gl)
	title := " Prompt "
	if e.label != "" {
		title = " Prompt " + string(gl.Bullet) + " " + sanitize.Line(e.label) + " "
	}
	box.Text(2, 0, grid.Fg(theme.Accent).With(grid.Bold), title)
	if hint := " enter send  esc cancel  tab built-in prompts  up/down history "; grid.Width(hint)+4 < box.W {
		box.Right(box.W-2, 2, grid.Fg(theme.Dim), hint)
	}
	in := box.Sub(2, 1, box.W-4, 1)
	e.drawText(in, gl.ASCII)
	if len(e.text) == 0 {
		in.Text(2, 0, grid.Fg(theme.Dim), "type a prompt, or press tab for a built-in one")
	}
}

// drawText draws the text in one row, scrolled so that the cursor shows, and returns how many cells it took, the cursor included.
func (e *editor) drawText(in grid.Area, ascii bool) int {
	line, cursor := e.line(ascii)
	shift := max(grid.Width(line[:cursor])-in.W+1, 0)
	for shift > 0 && len(line) > 0 && cursor > 0 {
		r, n := utf8.DecodeRuneInString(line)
		shift -= sanitize.Width(r)
		line, cursor = line[n:], cursor-n
	}
	x := grid.Width(line[:max(cursor, 0)])
	n := in.Text(0, 0, grid.Fg(theme.Data), line)
	if x < in.W {
		in.Paint(x, 0, 1, theme.Background, grid.Reverse)
	}
	return max(n, x+1)
}

// line is the text as it is shown, and the cursor's place in its bytes.
func (e *editor) line(ascii bool) (shown string, cursor int) {
	sign := "↵"
	if ascii {
		sign = "|"
	}
	view := func(rs []rune) string {
		return sanitize.Line(strings.ReplaceAll(string(rs), "\n", sign))
	}
	before := view(e.text[:e.at])
	return before + view(e.text[e.at:]), len(before)
}
