package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/ui/terminal"
)

// run runs the command: on the screen if there is a terminal, with plain output otherwise.
func (o *runOptions) run(c *cobra.Command) error {
	if err := native.CheckParams(o.params()); err != nil {
		return usageError{err}
	}
	o.chat.begin(o.model, o.raw)
	prompts, err := o.readPrompts(c.InOrStdin())
	if err != nil {
		return err
	}
	o.flagValue = func(name string) string { return c.Flags().Lookup(name).Value.String() }
	if !o.headless && o.view.visible() {
		return o.runLive(c.Context(), prompts)
	}
	if len(prompts) == 0 {
		if o.model != "" {
			return usagef("no prompt: use -p TEXT, -f FILE, or - for standard input")
		}
		prompts = o.builtinRequests()[:onePerKind]
	}
	if o.demo {
		o.pace = 0 // there is no reader
	}
	if err := o.chat.applyTemplate(prompts); err != nil {
		return err
	}
	ctx, stop := interruptible(c.Context(), errInterrupted)
	defer stop()
	return o.runHeadless(ctx, prompts, c.OutOrStdout(), c.ErrOrStderr())
}

// onePerKind is the number of built-in prompts with one of each kind.
const onePerKind = 5

// readPrompts converts the prompts of the command line to requests.
func (o *runOptions) readPrompts(stdin io.Reader) ([]engine.Request, error) {
	texts, err := o.prompts.read(stdin)
	if err != nil {
		return nil, err
	}
	requests := make([]engine.Request, len(texts))
	for i, text := range texts {
		requests[i] = o.request(text, "prompt")
	}
	return requests, nil
}

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()) }

// hasScreen reports whether there is a terminal that can show a screen. A dumb terminal, like the shell of an editor,
// cannot.
func hasScreen() bool {
	return consoleOut.terminal && isTerminal(os.Stdin) && os.Getenv("TERM") != "dumb"
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels with the given cause. A second one,
// or SIGQUIT, kills the program after it has restored the terminal. A SIGHUP that the parent ignores, like nohup, stays
// ignored. The returned function cancels the context and stops listening for signals.
func interruptible(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		defer signal.Stop(signals)
		for again := false; ; again = true {
			select {
			case s := <-signals:
				cancel(cause)
				if again || s == syscall.SIGQUIT {
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
		os.Exit(exitInterrupted)
	}
}
