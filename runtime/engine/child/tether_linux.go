package child

import "syscall"

// attributes detach the child from the terminal's signals (it ends when its standard input ends), and kill it when its
// parent dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tether is not needed on Linux.
func tether(int) (untie func()) { return func() {} }
