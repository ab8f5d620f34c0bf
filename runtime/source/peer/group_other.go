//go:build !linux

package peer

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }

func killGroup(p *os.Process) { _ = p.Kill() }
