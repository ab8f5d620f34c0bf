package child

import "syscall"

// attributes keep the signals of the terminal from the child, which is told to end by its standard input, and have it killed when its
// parent dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// tether has nothing to add.
func tether(int) (untie func()) { return func() {} }
