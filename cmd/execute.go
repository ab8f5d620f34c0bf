package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native"
)

// run does what the command line asks for: the screen where there is a terminal, plain output where there is none.
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
			return usagef("no prompt: give -p TEXT, -f FILE, or - for standard input")
		}
		prompts = o.builtinRequests()[:onePerKind]
	}
	if o.demo {
		o.pace = 0 // there is nobody who reads along
	}
	if err := o.chat.askAll(prompts); err != nil {
		return err
	}
	ctx, stop := interruptible(c.Context(), errInterrupted)
	defer stop()
	return o.runHeadless(ctx, prompts, c.OutOrStdout(), c.ErrOrStderr())
}

// onePerKind is how many of the built-in prompts make one of each kind.
const onePerKind = 5

// readPrompts turns the prompts of the command line into requests.
func (o *runOptions) readPrompts(stdin io.Reader) ([]runtime.Request, error) {
	texts, err := o.prompts.read(stdin)
	if err != nil {
		return nil, err
	}
	requests := make([]runtime.Request, len(texts))
	for i, text := range texts {
		requests[i] = o.request(text, "prompt")
	}
	return requests, nil
}

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()) }

// interruptible is a context that the first SIGINT, SIGTERM or SIGHUP cancels for the given cause; the second one kills the program
// as usual.
func interruptible(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-signals:
			cancel(cause)
		case <-ctx.Done():
		}
		signal.Stop(signals)
	}()
	return ctx, func() { cancel(nil) }
}
