package ui

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/terminal"
)

// The modes of a screen: the alternate screen without a cursor; pastes and focus as messages; keys that differ from each
// other, where the terminal can tell them apart.
var (
	enterScreen = ansi.SetModeAltScreenSaveCursor + ansi.ResetModeTextCursorEnable + ansi.SetModeBracketedPaste + ansi.SetModeFocusEvent +
		ansi.SetModifyOtherKeys2 + ansi.PushKittyKeyboard(ansi.KittyDisambiguateEscapeCodes)
	leaveScreen = ansi.ResetModifyOtherKeys + ansi.PopKittyKeyboard(1) + noMouse + ansi.ResetModeFocusEvent + ansi.ResetModeBracketedPaste +
		ansi.ResetModeSynchronizedOutput + ansi.ResetModeUnicodeCore + ansi.ResetStyle + ansi.ResetModeAltScreenSaveCursor + ansi.SetModeTextCursorEnable
	noMouse = ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseAnyEvent + ansi.ResetModeMouseExtSgr
)

// mouseModes are the escape sequences that switch from any mode of the mouse to another.
var mouseModes = [...]string{
	tea.MouseModeNone:       noMouse,
	tea.MouseModeCellMotion: noMouse + ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr,
	tea.MouseModeAllMotion:  noMouse + ansi.SetModeMouseAnyEvent + ansi.SetModeMouseExtSgr,
}

// The size of a terminal that has none, such as a serial console, in cells.
const unknownCols, unknownRows = 80, 24

// display is the terminal of a screen, and the only writer to it.
type display struct {
	in      *os.File
	out     io.Writer // *os.File, except in tests
	queries string    // sent when the screen opens
	lost    context.CancelCauseFunc
	sent    *throttle // counts bytes; nil: nobody

	restore func()
	sized   bool // the terminal had a size when it was last asked
	synced  bool // the terminal draws what is between two marks at once
	mouse   tea.MouseMode
	shown   grid.Grid   // the frame on the terminal
	skin    *theme.Skin // of shown; nil: the terminal may show anything
	buf     []byte
}

// enter opens the screen.
func (d *display) enter() {
	d.restore = terminal.Take(d.in, d.out, leaveScreen+ansi.SetWindowTitle(""))
	d.mouse, d.skin = tea.MouseModeNone, nil
	d.write([]byte(enterScreen + ansi.SetWindowTitle("llmtop") + d.queries))
}

// leave restores the terminal.
func (d *display) leave() { d.restore() }

// retake takes the terminal again after somebody else, such as a shell, has changed it.
func (d *display) retake() {
	_, _ = term.MakeRaw(d.in.Fd()) // the error says that it is no terminal
	d.write([]byte(ansi.SetModeBracketedPaste + ansi.ResetModeTextCursorEnable))
	d.skin = nil
}

// size returns the size of the terminal in cells: zero without a terminal. One that has lost its size is gone.
func (d *display) size() tea.WindowSizeMsg {
	file, ok := d.out.(*os.File)
	if !ok {
		return tea.WindowSizeMsg{}
	}
	w, h, err := term.GetSize(file.Fd())
	switch {
	case err == nil && (w == 0 || h == 0):
		w, h = unknownCols, unknownRows
	case err != nil && d.sized:
		d.lost(fmt.Errorf("read size of terminal: %w", err))
	}
	d.sized = err == nil
	return tea.WindowSizeMsg{Width: w, Height: h}
}

// answer applies the answer of the terminal to a query.
func (d *display) answer(msg tea.ModeReportMsg) {
	switch {
	case msg.Mode == ansi.ModeSynchronizedOutput && msg.Value == ansi.ModeReset: // known, and off
		d.synced = true
	case msg.Mode == ansi.ModeUnicodeCore && !msg.Value.IsNotRecognized() && !msg.Value.IsPermanentlyReset():
		d.write([]byte(ansi.SetModeUnicodeCore))
	}
}

// paint writes what a frame changes on the terminal.
func (d *display) paint(g *grid.Grid, skin *theme.Skin, mouse tea.MouseMode) {
	d.buf = d.buf[:0]
	if mouse != d.mouse {
		d.buf, d.mouse = append(d.buf, mouseModes[mouse]...), mouse
	}
	before := &d.shown
	if d.skin != skin {
		before = nil
	}
	changes := g.Changes(before, skin)
	synced := d.synced && len(changes) > 0
	if synced {
		d.buf = append(d.buf, ansi.SetModeSynchronizedOutput...)
	}
	d.buf = append(d.buf, changes...)
	if synced {
		d.buf = append(d.buf, ansi.ResetModeSynchronizedOutput...)
	}
	d.shown.Copy(g)
	d.skin = skin
	d.write(d.buf)
}

// write writes to the terminal. A failed write means that it is gone, which ends the screen.
func (d *display) write(p []byte) {
	if len(p) == 0 {
		return
	}
	n, err := d.out.Write(p)
	if d.sent != nil {
		d.sent.sent += int64(n)
	}
	if err != nil {
		d.lost(fmt.Errorf("write to terminal: %w", err))
	}
}

// terminalQueries returns what to ask the terminal: whether it draws frames at once and counts cells by grapheme
// clusters, unless it is known to show such queries, and its background if that decides the theme.
func (cfg Config) terminalQueries() (queries string) {
	getenv := func(name string) string {
		for _, v := range cfg.Environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}
	known := func(name string) bool { return strings.Contains(getenv("TERM"), name) }
	if getenv("SSH_TTY") == "" && !strings.Contains(getenv("TERM_PROGRAM"), "Apple") || getenv("WT_SESSION") != "" ||
		slices.ContainsFunc([]string{"ghostty", "wezterm", "alacritty", "kitty", "rio"}, known) {
		queries = ansi.RequestModeSynchronizedOutput + ansi.RequestModeUnicodeCore
	}
	if cfg.DetectTheme && cfg.Profile != theme.NoColour {
		queries += ansi.RequestBackgroundColor
	}
	return queries
}
