//go:build !unix

package ui

import (
	"context"

	tea "charm.land/bubbletea/v2"
)

// onSignals does nothing on systems without signals of terminals. Sizes of a console arrive as input.
func onSignals(context.Context, *tea.Program) (stop func()) { return func() {} }

// suspend does nothing on systems without SIGTSTP.
func suspend() {}
