//go:build unix && !linux

package child

import "syscall"

// attributes keep the signals of the terminal from the child, which is told to end by its standard input.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tether does nothing: a child whose parent is gone sees the end of its standard input.
func tether(int) (untie func()) { return func() {} }
