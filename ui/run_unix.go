//go:build unix

package ui

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"
)

// onSuspend suspends the program in order when the user presses ctrl+z or another process stops it (SIGTSTP): it
// restores the terminal before the process stops and takes it again when the process continues. If no shell could
// continue it, the screen stays and shows a note. After a stop that it could not see (SIGSTOP) it takes the terminal
// again, too, because the shell has changed it. The returned function stops listening.
func onSuspend(ctx context.Context, p *tea.Program, terminal *os.File) func() {
	end, done := make(chan struct{}), make(chan struct{})
	s := &suspension{ctx: ctx, stops: make(chan os.Signal, 1), continued: make(chan os.Signal, 1)}
	signal.Notify(s.stops, syscall.SIGTSTP)
	signal.Notify(s.continued, syscall.SIGCONT)
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-s.continued:
				_, _ = term.MakeRaw(terminal.Fd()) // the error says that it is no terminal
				p.Send(tea.RawMsg{Msg: ansi.SetModeBracketedPaste + ansi.HideCursor})
				p.Send(tea.ClearScreen())
				continue
			case <-s.stops:
			}
			if !resumable() {
				p.Send(noticeMsg("cannot suspend: no shell would resume llmtop"))
				continue
			}
			resumed := make(chan struct{})
			p.Send(tea.Exec(s, func(error) tea.Msg {
				close(resumed)
				return tea.ResumeMsg{}
			})())
			select {
			case <-end:
				return
			case <-resumed:
			}
			select {
			case <-s.stops: // sent while the process was about to stop
			default:
			}
		}
	}()
	return func() {
		signal.Stop(s.stops)
		signal.Stop(s.continued)
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

// suspension stops the process while the terminal library has released the terminal. It is a tea.ExecCommand.
type suspension struct {
	ctx       context.Context // ends the screen
	stops     chan os.Signal
	continued chan os.Signal
}

// Run stops the whole job, as the terminal does on ctrl+z, and returns when it continues. It uses SIGSTOP, because
// SIGTSTP no longer stops a Go program that listens for it.
func (s *suspension) Run() error {
	select {
	case <-s.continued: // after an earlier stop
	default:
	}
	if err := syscall.Kill(0, syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-s.continued:
	case <-s.ctx.Done():
	}
	return nil
}

// SetStdin implements tea.ExecCommand.
func (*suspension) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (*suspension) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (*suspension) SetStderr(io.Writer) {}
