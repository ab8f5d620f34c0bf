package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// understandEscapes makes a console understand escape sequences, and returns a function that restores its mode.
func understandEscapes(out io.Writer) (undo func()) {
	file, ok := out.(*os.File)
	if !ok {
		return func() {}
	}
	console, before := windows.Handle(file.Fd()), uint32(0)
	if windows.GetConsoleMode(console, &before) != nil { // no console
		return func() {}
	}
	_ = windows.SetConsoleMode(console, before|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|windows.DISABLE_NEWLINE_AUTO_RETURN)
	return func() { _ = windows.SetConsoleMode(console, before) }
}
