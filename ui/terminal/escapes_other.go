//go:build !windows

package terminal

import "io"

// understandEscapes does nothing: all terminals understand escape sequences.
func understandEscapes(io.Writer) (undo func()) { return func() {} }
