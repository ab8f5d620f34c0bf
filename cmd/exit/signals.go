package exit

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/llmtop/llmtop/ui/terminal"
)

// WithSignals returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with the given cause. A later one, or
// SIGQUIT, kills the program after it has restored the terminal. Signals right after the first are the same request:
// timeout(1) sends one to the process and one to its group. A SIGHUP that the parent ignores, like nohup, stays
// ignored. The returned function cancels the context and stops listening for signals.
func WithSignals(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		defer signal.Stop(signals)
		for first := (time.Time{}); ; {
			select {
			case s := <-signals:
				cancel(cause)
				if first.IsZero() {
					first = time.Now()
				}
				if time.Since(first) > sameRequest || s == syscall.SIGQUIT {
					terminal.GiveBack(closeTimeout)
					kill(s)
					return
				}
			case <-over:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		cancel(nil)
		close(over)
	})
}

// sameRequest is how long after the first signal others are sent by the same request to end.
const sameRequest = 100 * time.Millisecond

// closeTimeout is how long a screen may take to close after a second signal.
const closeTimeout = time.Second

// kill sends this process a signal with its default action.
func kill(s os.Signal) {
	signal.Reset(s)
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(s)
	}
	if err != nil { // Windows
		os.Exit(CodeInterrupted)
	}
}
