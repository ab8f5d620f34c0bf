//go:build unix

package ui

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// onSignals tells a program of signals of its terminal: that its size has changed (SIGWINCH), that the user presses
// ctrl+z or another process stops it (SIGTSTP), and that it goes on after a stop that it could not see (SIGSTOP). If no
// shell could continue it, it does not stop and shows a note. The returned function stops listening.
func onSignals(ctx context.Context, p *tea.Program) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	resized, stops, continued := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	signal.Notify(stops, syscall.SIGTSTP)
	signal.Notify(continued, syscall.SIGCONT)
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-resized:
				p.Send(tea.WindowSizeMsg{})
				continue
			case <-continued:
				p.Send(loopMsg((*loop).continued))
				continue
			case <-stops:
			}
			if !resumable() {
				p.Send(appMsg(func(a *app) { a.Notify("cannot suspend: no shell would resume llmtop") }))
				continue
			}
			resumed := make(chan struct{})
			p.Send(loopMsg(func(l *loop) tea.Msg {
				return l.suspend(func() {
					defer close(resumed)
					stopUntilContinued(ctx, continued)
				})
			}))
			select {
			case <-end:
				return
			case <-resumed:
			}
			select {
			case <-stops: // sent while the process was about to stop
			default:
			}
		}
	}()
	return func() {
		for _, c := range []chan os.Signal{resized, stops, continued} {
			signal.Stop(c)
		}
		close(end)
		<-done
	}
}

// suspend sends SIGTSTP, as the terminal does on ctrl+z outside of raw mode.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGTSTP) }

// resumable reports whether a shell can continue this process once it has stopped: whether its process group has a
// parent in the same session. The group of a session leader has none (tmux new-window, docker run).
func resumable() bool {
	session, err := unix.Getsid(0)
	group, parent := syscall.Getpgrp(), os.Getppid()
	if err != nil || session == group || parent == 0 {
		return false
	}
	if parentGroup, err := syscall.Getpgid(parent); err == nil && parentGroup == group {
		return true // the parent belongs to the same job of the shell
	}
	parentSession, err := unix.Getsid(parent)
	return err == nil && parentSession == session
}

// stopUntilContinued stops the whole job, as the terminal does on ctrl+z, and returns when it continues or ctx ends. It
// uses SIGSTOP, because SIGTSTP no longer stops a Go program that listens for it.
func stopUntilContinued(ctx context.Context, continued <-chan os.Signal) {
	select {
	case <-continued: // after an earlier stop
	default:
	}
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return
	}
	select {
	case <-continued:
	case <-ctx.Done():
	}
}
