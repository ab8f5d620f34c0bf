// Package console has the standard streams. Text of this program goes through them, which removes control sequences.
package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/mattn/go-isatty"
)

// Console is a standard stream. All text of llmtop goes through one, which removes control sequences, since it may be a
// terminal. Only the screen and the process of an engine write raw bytes, to Raw.
type Console struct {
	*clean.Writer
	raw      io.Writer
	terminal bool
}

// The standard streams. Nothing else in this program writes to them.
var (
	Raw = os.Stdout
	Out = New(Raw, IsTerminal(Raw))
	Err = New(os.Stderr, IsTerminal(os.Stderr))
)

// New returns a console that writes to raw. terminal says whether that is a terminal.
func New(raw io.Writer, terminal bool) *Console {
	return &Console{clean.NewWriter(raw), raw, terminal}
}

// Overwrite replaces the current line of a terminal.
func (c *Console) Overwrite(format string, args ...any) {
	fmt.Fprintf(c.raw, "\r\x1b[K%s", clean.Line(fmt.Sprintf(format, args...)))
}

// TerminalOf returns w as a console if it is a terminal, where lines can be overwritten; nil otherwise.
func TerminalOf(w io.Writer) *Console {
	if c, ok := w.(*Console); ok && c.terminal {
		return c
	}
	return nil
}

// maxError is the maximum length of a printed error in characters, a backstop: names are cut where errors are made.
const maxError = 4000

// PrintError prints an error to standard error, without the secrets that URLs in it may have.
func PrintError(err error) {
	words := strings.TrimSpace(err.Error())
	if head := []rune(words[:min(len(words), 4*maxError)]); len(head) > maxError {
		words = string(head[:maxError]) + "…"
	}
	fmt.Fprintf(Err, "llmtop: %s\n", clean.URLs(words))
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()) }

// TakeInput returns standard input if it is no terminal, and puts the terminal, if there is one, in its place: its keys are
// those of the screen. It fails if standard input is a terminal.
func TakeInput() (*os.File, error) {
	input := os.Stdin
	if IsTerminal(input) {
		return nil, errors.New("standard input is a terminal")
	}
	name := "/dev/tty"
	if runtime.GOOS == "windows" {
		name = "CONIN$"
	}
	if terminal, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
		os.Stdin = terminal
	}
	return input, nil
}

// HasScreen reports whether there is a terminal that can show a screen. A dumb terminal, like the shell of an editor,
// cannot.
func HasScreen() bool {
	return Out.terminal && IsTerminal(os.Stdin) && os.Getenv("TERM") != "dumb"
}
