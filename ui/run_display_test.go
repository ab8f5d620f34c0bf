package ui

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// still is a screen of one word, which it draws when it is told to.
type still struct {
	grid  grid.Grid
	skin  *theme.Skin
	word  string // "": the frame before is still right
	mouse tea.MouseMode
	cmd   tea.Cmd // the answer to the next message
}

func (s *still) Init() tea.Cmd          { return nil }
func (s *still) Mouse() tea.MouseMode   { return s.mouse }
func (s *still) Update(tea.Msg) tea.Cmd { return s.cmd }
func (s *still) Draw() (*grid.Grid, *theme.Skin) {
	if s.word == "" {
		return nil, nil
	}
	s.grid.Reset(4, 2)
	s.grid.All().Text(0, 1, grid.Style{}, s.word)
	s.word = ""
	return &s.grid, s.skin
}

// brokenTerminal fails to write.
type brokenTerminal struct{}

func (brokenTerminal) Write([]byte) (int, error) { return 0, errors.New("input/output error") }

// TestDisplay checks what the loop writes for frames and messages.
func TestDisplay(t *testing.T) {
	var out bytes.Buffer
	sent := newThrottle(false)
	s := &still{skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Unicode)}
	l := &loop{screen: s, display: &display{out: &out, sent: &sent, lost: func(err error) { t.Error(err) }}}
	const sync, unsync = ansi.SetModeSynchronizedOutput, ansi.ResetModeSynchronizedOutput
	for _, step := range []struct {
		name  string
		msg   tea.Msg
		word  string
		mouse tea.MouseMode
		want  string
	}{
		{"the first frame", tickMsg{}, "one", tea.MouseModeNone, "\x1b[1;1H    \x1b[2;1Hone "},
		{"no frame", tickMsg{}, "", tea.MouseModeNone, ""},
		{"the same frame", tickMsg{}, "one", tea.MouseModeNone, ""},
		{"changes, and another mode of the mouse", tickMsg{}, "ore", tea.MouseModeAllMotion, mouseModes[tea.MouseModeAllMotion] + "\x1b[2;2Hr"},
		{"another size", tea.WindowSizeMsg{Width: 4, Height: 2}, "ore", tea.MouseModeAllMotion, "\x1b[1;1H    \x1b[2;1Hore "},
		{"a mode that is on", tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeSet}, "one", tea.MouseModeAllMotion, "\x1b[2;2Hn"},
		{"a terminal that draws at once", tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset}, "ore", tea.MouseModeAllMotion, sync + "\x1b[2;2Hr" + unsync},
		{"no frame at once", tickMsg{}, "ore", tea.MouseModeAllMotion, ""},
		{"a terminal that knows no clusters", tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeNotRecognized}, "", tea.MouseModeAllMotion, ""},
		{"a terminal that knows clusters", tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeReset}, "", tea.MouseModeAllMotion, ansi.SetModeUnicodeCore},
		{"a copy", copyMsg("text"), "", tea.MouseModeAllMotion, ansi.SetSystemClipboard("text")},
	} {
		out.Reset()
		before := sent.sent
		s.word, s.mouse = step.word, step.mouse
		l.Update(step.msg)
		if got := out.String(); got != step.want || sent.sent != before+int64(len(got)) {
			t.Errorf("%s: wrote %q, want %q; counted %d bytes", step.name, got, step.want, sent.sent-before)
		}
	}
}

// A lost terminal and a panic of a command end the screen.
func TestScreenEnds(t *testing.T) {
	s := &still{word: "one", skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Unicode)}
	ended := func(run func(l *loop)) string {
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		run(&loop{screen: s, display: &display{out: brokenTerminal{}, lost: end}, end: end})
		if ctx.Err() == nil {
			return "it goes on"
		}
		return context.Cause(ctx).Error()
	}
	if err := ended(func(l *loop) { l.Update(tickMsg{}) }); err != "write to terminal: input/output error" {
		t.Errorf("lost terminal: %s", err)
	}
	s.cmd = func() tea.Msg { panic("provoked by a test") }
	err := ended(func(l *loop) {
		_, cmd := l.Update(tickMsg{})
		cmd()
	})
	if !strings.HasPrefix(err, "draw screen: panic: provoked by a test\n") || !strings.Contains(err, "run_display_test.go") {
		t.Errorf("panic: %s", err)
	}
}

// Terminals known to show queries are not asked.
func TestTerminalQueries(t *testing.T) {
	for _, c := range []struct {
		environ []string
		asks    bool
	}{
		{[]string{"TERM=xterm-256color"}, true},
		{[]string{"TERM=xterm-256color", "TERM_PROGRAM=vscode"}, true},
		{[]string{"TERM=xterm-256color", "TERM_PROGRAM=Apple_Terminal"}, false},
		{[]string{"TERM=xterm-256color", "SSH_TTY=/dev/pts/1"}, false},
		{[]string{"TERM=xterm-kitty", "SSH_TTY=/dev/pts/1"}, true},
	} {
		if asks := (Config{Environ: c.environ}).terminalQueries() != ""; asks != c.asks {
			t.Errorf("%v: asked %v", c.environ, asks)
		}
	}
}
