//go:build !unix

package ui

import tea "charm.land/bubbletea/v2"

// onSuspend does nothing where processes cannot be suspended from a terminal.
func onSuspend(*tea.Program) func() { return func() {} }

// suspend does nothing there either.
func suspend() {}
