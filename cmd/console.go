package cmd

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// console is a standard stream. All text of llmtop goes through one, which removes control sequences, since it may be a
// terminal. Only the screen and the process of an engine write raw bytes, to rawOut.
type console struct {
	*clean.Writer
	raw      io.Writer
	terminal bool
}

// The standard streams. Nothing else in this program writes to them.
var (
	rawOut     = os.Stdout
	consoleOut = newConsole(rawOut, isTerminal(rawOut))
	consoleErr = newConsole(os.Stderr, isTerminal(os.Stderr))
)

func newConsole(raw io.Writer, terminal bool) *console {
	return &console{clean.NewWriter(raw), raw, terminal}
}

// overwrite replaces the current line of a terminal.
func (c *console) overwrite(format string, args ...any) {
	fmt.Fprintf(c.raw, "\r\x1b[K%s", clean.Line(fmt.Sprintf(format, args...)))
}

// terminalOf returns the console that w is, if it is a terminal, where lines can be overwritten; nil otherwise.
func terminalOf(w io.Writer) *console {
	if c, ok := w.(*console); ok && c.terminal {
		return c
	}
	return nil
}

// maxError is the maximum length of a printed error in characters, a backstop: names are cut where errors are made.
const maxError = 4000

// printError prints an error to standard error.
func printError(err error) {
	words := strings.TrimSpace(err.Error())
	if head := []rune(words[:min(len(words), 4*maxError)]); len(head) > maxError {
		words = string(head[:maxError]) + "…"
	}
	fmt.Fprintf(consoleErr, "llmtop: %s\n", words)
}
