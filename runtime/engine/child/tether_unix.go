//go:build unix && !linux

package child

import "syscall"

// attributes detach the child from the terminal's signals. It ends when its standard input ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// tether is not needed: a child whose parent has exited sees the end of its standard input.
func tether(int) (untie func()) { return func() {} }
