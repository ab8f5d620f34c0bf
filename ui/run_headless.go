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

// Headless is the screen without a terminal, for recordings: a script drives its clock and its keys.
type Headless struct{ app *app }

// NewHeadless makes a screen of cols by rows cells. It ignores Input, Output and Environ of cfg.
func NewHeadless(cfg Config, cols, rows int) *Headless {
	s := &Headless{newApp(cfg)}
	// File names carry the time of the recorded session, so that they are the same each time it is recorded.
	s.app.saveScreen = func(svg, text []byte) (string, error) { return saveScreen(s.wall(), svg, text) }
	s.app.saveReport = func(json, timeline []byte) (string, error) { return saveReport(s.wall(), json, timeline) }
	s.Resize(cols, rows)
	return s
}

func (s *Headless) wall() time.Time { return s.app.snap.Wall }

// Tick takes the current snapshot.
func (s *Headless) Tick() { s.app.Update(tickMsg{}) }

// Resize changes the size of the screen, in cells.
func (s *Headless) Resize(cols, rows int) { s.app.Update(tea.WindowSizeMsg{Width: cols, Height: rows}) }

// Press presses a key for which KnownKey is true and runs its command. It reports whether that is to quit.
func (s *Headless) Press(key string) (quit bool) { return s.do(keyPress(key)) }

// Type presses the key of a character.
func (s *Headless) Type(character rune) {
	s.do(tea.KeyPressMsg{Code: character, Text: string(character)})
}

// do handles a key and then the result of its command.
func (s *Headless) do(msg tea.Msg) (quit bool) {
	cmd := s.app.Update(msg)
	if cmd == nil {
		return false
	}
	switch done := cmd().(type) {
	case tea.QuitMsg:
		return true
	case appMsg:
		s.app.Update(done)
	}
	return false
}

// Frame returns the current frame and its skin, valid until the next call of another method.
func (s *Headless) Frame() (*grid.Grid, *theme.Skin) {
	if s.app.dirty {
		s.app.draw()
	}
	return &s.app.grid, s.app.skin
}

// namedKeys are the keys without a character.
var namedKeys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"shift+left": {Code: tea.KeyLeft, Mod: tea.ModShift}, "shift+right": {Code: tea.KeyRight, Mod: tea.ModShift},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete}, "f1": {Code: tea.KeyF1},
}

// keyPress returns the message of the terminal library for a key.
func keyPress(key string) tea.KeyPressMsg {
	if msg, ok := namedKeys[key]; ok {
		return msg
	}
	if letter, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
}

// KnownKey reports whether Press supports a key: a character, ctrl+ with a letter, or a name. It excludes ctrl+z,
// because a screen without a terminal cannot be suspended.
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
