//go:build !unix

package ui

import (
	"context"
	"os"

	tea "charm.land/bubbletea/v2"
)

// onSuspend does nothing on systems without SIGTSTP.
func onSuspend(context.Context, *tea.Program, *os.File) func() { return func() {} }

// suspend does nothing on systems without SIGTSTP.
func suspend() {}
