package ui

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Stage is the screen without a terminal, for recordings: it looks when it is told to, and its keys come from a script.
type Stage struct{ app *app }

// NewStage makes a screen of so many cells. Of cfg, Input, Output and Environ are not used.
func NewStage(cfg Config, cols, rows int) *Stage {
	s := &Stage{newApp(cfg)}
	// Names tell when what is seen happened, which is the same whenever a recording is made of it.
	s.app.save = func(svg, text []byte) (string, error) { return saveScreen(s.wall(), svg, text) }
	s.app.saveReport = func(json []byte) (string, error) { return saveReport(s.wall(), json) }
	s.Resize(cols, rows)
	return s
}

func (s *Stage) wall() time.Time { return s.app.snap.Wall }

// Tick looks at what there is to see now.
func (s *Stage) Tick() { s.app.Update(tickMsg{}) }

// Resize changes the size of the screen, in cells.
func (s *Stage) Resize(cols, rows int) { s.app.Update(tea.WindowSizeMsg{Width: cols, Height: rows}) }

// Press presses a key of those for which KnownKey is true, and does what it asks for. It reports whether that is to quit.
func (s *Stage) Press(key string) (quit bool) { return s.do(keyPress(key)) }

// Type presses the key of a character.
func (s *Stage) Type(character rune) { s.do(tea.KeyPressMsg{Code: character, Text: string(character)}) }

// do takes a key and then what its command has come to.
func (s *Stage) do(msg tea.Msg) (quit bool) {
	_, cmd := s.app.Update(msg)
	if cmd == nil {
		return false
	}
	switch done := cmd().(type) {
	case tea.QuitMsg:
		return true
	case wroteMsg:
		s.app.Update(done)
	}
	return false
}

// Frame is the screen as it is, with its colours; good until the next call of another method.
func (s *Stage) Frame() (*grid.Grid, *theme.Skin) {
	if s.app.dirty {
		s.app.draw()
	}
	return &s.app.grid, s.app.skin
}

// namedKeys are the keys that are no character.
var namedKeys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"shift+left": {Code: tea.KeyLeft, Mod: tea.ModShift}, "shift+right": {Code: tea.KeyRight, Mod: tea.ModShift},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete}, "f1": {Code: tea.KeyF1},
}

// keyPress is the message that the terminal library sends for a key.
func keyPress(key string) tea.KeyPressMsg {
	if msg, ok := namedKeys[key]; ok {
		return msg
	}
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
}

// KnownKey reports whether Press takes a key: a character, ctrl+ with a letter, or a name. To suspend a screen that has no
// terminal means nothing.
func KnownKey(key string) bool {
	if _, ok := namedKeys[key]; ok {
		return true
	}
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return len(letter) == 1 && letter[0] >= 'a' && letter[0] < 'z'
	}
	r, n := utf8.DecodeRuneInString(key)
	return n == len(key) && r != utf8.RuneError && unicode.IsPrint(r) && r != ' '
}
