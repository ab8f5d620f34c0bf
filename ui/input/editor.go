// Package input is the lines into which the user types: the prompt editor, filters and searches.
package input

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Suggestion is a built-in prompt; Label is its prompt kind.
type Suggestion struct{ Label, Text string }

// Bounds of a text, in characters.
const (
	MaxPrompt = 1 << 16
	maxSearch = 256 // it is matched against every row for each change
)

// maxHistory bounds the number of prompts in the editor's history.
const maxHistory = 100

// Editor is a one-line text input. It keeps pasted newlines and shows them as a sign.
type Editor struct {
	Open           bool
	Max            int // bounds the text, in characters; 0: the bound of a search
	text           []rune
	cursor         int // in runes
	history        []string
	historyAt      int          // index in the history; len(history): the new line
	draft          string       // the text typed before the user opened the history
	Suggest        []Suggestion // built-in prompts, offered by tab
	nextSuggestion int          // index of the suggestion that tab shows next
	label          string
	copies         int // how often enter sends the prompt, a power of two
}

// MaxCopies bounds how often enter sends a prompt.
const MaxCopies = 16

// Show opens the editor with no text.
func (e *Editor) Show() {
	e.Open, e.text, e.cursor, e.label, e.historyAt, e.copies = true, e.text[:0], 0, "", len(e.history), 1
}

// Text returns the text.
func (e *Editor) Text() string { return string(e.text) }

// Set replaces the text and moves the cursor to its end.
func (e *Editor) Set(s, label string) {
	e.text = append(e.text[:0], []rune(s)...)
	e.text = e.text[:min(len(e.text), e.max())]
	e.cursor, e.label = len(e.text), label
}

func (e *Editor) max() int { return cmp.Or(e.Max, maxSearch) }

// Insert inserts text at the cursor, as far as it fits, and reports whether the text changed. It turns the line ends of
// any system into newlines and drops other control codes.
func (e *Editor) Insert(s string) (changed bool) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	var in []rune
	for _, r := range s {
		if r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r >= 0xa0) {
			in = append(in, r)
		}
	}
	if in = in[:min(len(in), e.max()-len(e.text))]; len(in) == 0 {
		return false
	}
	e.text = slices.Insert(e.text, e.cursor, in...)
	e.cursor += len(in)
	e.label = ""
	return true
}

// Key handles one key and reports whether the user sent the prompt.
func (e *Editor) Key(name, text string) (sent bool) {
	switch name {
	case "enter":
		return strings.TrimSpace(string(e.text)) != ""
	case "esc", "ctrl+c":
		e.Open = false
	case "tab":
		e.suggestNext(1)
	case "shift+tab":
		e.suggestNext(-1)
	case "up", "ctrl+p":
		e.recall(-1)
	case "ctrl+t":
		if e.copies *= 2; e.copies > MaxCopies {
			e.copies = 1
		}
	case "down", "ctrl+n":
		e.recall(1)
	default:
		e.Edit(name, text)
	}
	return false
}

// Edit handles the keys that move the cursor and change the text, and reports whether the text changed.
func (e *Editor) Edit(name, text string) (changed bool) {
	switch name {
	case "left", "ctrl+b":
		e.cursor = max(e.cursor-1, 0)
	case "right", "ctrl+f":
		e.cursor = min(e.cursor+1, len(e.text))
	case "home", "ctrl+a":
		e.cursor = 0
	case "end", "ctrl+e":
		e.cursor = len(e.text)
	case "backspace", "ctrl+h":
		return e.remove(e.cursor-1, e.cursor)
	case "delete", "ctrl+d":
		return e.remove(e.cursor, e.cursor+1)
	case "ctrl+u":
		return e.remove(0, e.cursor)
	case "ctrl+k":
		return e.remove(e.cursor, len(e.text))
	case "ctrl+w":
		from := e.cursor
		for from > 0 && e.text[from-1] == ' ' {
			from--
		}
		for from > 0 && e.text[from-1] != ' ' {
			from--
		}
		return e.remove(from, e.cursor)
	default:
		return e.Insert(text)
	}
	return false
}

func (e *Editor) remove(from, to int) (changed bool) {
	from, to = max(from, 0), min(to, len(e.text))
	if changed = from < to; changed {
		e.text = slices.Delete(e.text, from, to)
		e.cursor, e.label = from, ""
	}
	return changed
}

// recall moves through the history; after its newest entry comes the draft.
func (e *Editor) recall(step int) {
	if e.historyAt == len(e.history) {
		e.draft = string(e.text)
	}
	to := e.historyAt + step
	switch {
	case to < 0 || to > len(e.history):
		return
	case to == len(e.history):
		e.Set(e.draft, "")
	default:
		e.Set(e.history[to], "")
	}
	e.historyAt = to
}

// suggestNext shows the next built-in prompt, or the previous one if step is negative.
func (e *Editor) suggestNext(step int) {
	n := len(e.Suggest)
	if n == 0 {
		return
	}
	if step < 0 {
		e.nextSuggestion = (e.nextSuggestion + 2*n - 2) % n
	}
	p := e.Suggest[e.nextSuggestion%n]
	e.Set(p.Text, p.Label)
	e.nextSuggestion = (e.nextSuggestion + 1) % n
}

// Submit returns the prompt, its label and how often to send it, adds it to the history and closes the editor.
func (e *Editor) Submit() (text, label string, copies int) {
	text, label = string(e.text), e.label
	if n := len(e.history); n == 0 || e.history[n-1] != text {
		e.history = append(e.history, text)
		e.history = e.history[max(len(e.history)-maxHistory, 0):]
	}
	e.Open = false
	return text, label, e.copies
}

// Draw draws the editor over the bottom of the screen, scrolled so that the cursor is visible, and returns its place.
func (e *Editor) Draw(a grid.Area, skin *theme.Skin) grid.Rect {
	title := "Prompt"
	if e.label != "" {
		title += " " + string(skin.Glyphs.Bullet) + " " + sanitize.Line(e.label)
	}
	if e.copies > 1 {
		title += " " + skin.Glyphs.Times + strconv.Itoa(e.copies)
	}
	box := a.Sub(0, a.H-3, a.W, 3)
	const hint = "enter send  esc cancel  tab built-in prompts  up/down history"
	pane.Dialog(box, title, pane.FirstFitting(box.W-grid.Width(title)-8, hint+"  ctrl+t send several", hint), skin.Glyphs)
	in := box.Sub(2, 1, box.W-4, 1)
	e.DrawText(in, skin.Glyphs.ASCII)
	if len(e.text) == 0 {
		in.Text(2, 0, grid.Fg(theme.Dim), "type a prompt, or press tab for a built-in one")
	}
	return box.Rect
}

// runesPerCell is how many characters a cell of a row may take, with combining ones.
const runesPerCell = 8

// DrawText draws the text in one row, scrolled so that the cursor is visible, and returns its width in cells, cursor
// included.
func (e *Editor) DrawText(in grid.Area, ascii bool) int {
	sign := "↵"
	if ascii {
		sign = "|"
	}
	most := runesPerCell * max(in.W, 0) // a long text is not looked at beyond the row
	view := func(rs []rune) string { return sanitize.Line(strings.ReplaceAll(string(rs), "\n", sign)) }
	before, after := view(e.text[max(e.cursor-most, 0):e.cursor]), view(e.text[e.cursor:min(e.cursor+most, len(e.text))])
	for shift := grid.Width(before) - in.W + 1; shift > 0 && before != ""; {
		r, n := utf8.DecodeRuneInString(before)
		shift -= sanitize.Width(r)
		before = before[n:]
	}
	x := grid.Width(before)
	n := in.Clip(0, 0, in.W, grid.Fg(theme.Data), before+after) // the cut is the cursor's window
	if x < in.W {
		in.Paint(x, 0, 1, theme.Background, grid.Reverse)
	}
	return max(n, x+1)
}
