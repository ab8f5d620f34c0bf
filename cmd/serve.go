package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/config"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

func newServeCommand() *cobra.Command {
	var opts local.Run
	c := &cobra.Command{
		Use:   "serve [MODEL.gguf]",
		Short: "Run a model for others to watch and prompt",
		Long: `serve loads a model (without an argument the built-in one) and waits for llmtop attach, in another
terminal or on another machine, to watch it and to send prompts. The text of a request goes only to
the reader that sent it.`,
		Example: `  llmtop serve model.gguf
  llmtop serve --listen tcp:127.0.0.1:7070 --parallel 4`,
		Args: takes(0, 1, "serve takes one model file"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.Model = args[0]
			}
			opts.Command = c
			return serve(c.Context(), &opts, c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	opts.BindEngine(flags)
	opts.Outputs.Bind(flags)
	flags.StringVar(&opts.Listen.At, "listen", socket.Address("llmtop"), "`ADDRESS` to listen at, unix:PATH or tcp:HOST:PORT (default: a socket that attach finds)")
	flags.Lookup("listen").DefValue = "" // its name contains the process ID
	config.Use(c, &opts.Alerts, local.ConfigFlags(), func() error { return cmp.Or(opts.Outputs.Check(), opts.CheckEngine()) })
	return c
}

// serve runs until a signal ends it.
func serve(ctx context.Context, r *local.Run, notes io.Writer) error {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
	defer stop()
	e, err := r.Open(ctx, false)
	if err != nil {
		return exit.IgnoreClosed(err)
	}
	return e.Run(ctx, func(ctx context.Context) error {
		fmt.Fprintf(notes, "listening: llmtop attach %s\n", e.Address)
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, exit.ErrClosed) {
			return err
		}
		return nil
	})
}
