//go:build unix

package ui

import (
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
)

// onSuspend restores the terminal when another process stops this one (SIGTSTP): the program is asked to suspend itself,
// which restores, stops with the signal's default action, and takes the terminal back when it is continued. The returned
// function ends the listening.
func onSuspend(p *tea.Program) func() {
	stop, done := make(chan struct{}), make(chan struct{})
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, syscall.SIGTSTP, syscall.SIGCONT)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case s := <-sig:
				if s == syscall.SIGCONT {
					signal.Notify(sig, syscall.SIGTSTP)
					continue
				}
				signal.Reset(syscall.SIGTSTP)
				go p.Send(tea.SuspendMsg{})
			}
		}
	}()
	return func() {
		signal.Stop(sig)
		close(stop)
		<-done
	}
}

// suspend stops the process as its terminal would on ctrl+z, by way of onSuspend.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGTSTP) }
