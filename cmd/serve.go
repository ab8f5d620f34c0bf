package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/runtime/source/socket"
)

func newServeCommand() *cobra.Command {
	var opts runOptions
	c := &cobra.Command{
		Use:   "serve [MODEL.gguf]",
		Short: "Run a model for others to watch and prompt",
		Long: `serve loads a model (without an argument the built-in one) and waits for llmtop attach, in another
terminal or on another machine, to watch it and to send prompts. The text of a request goes only to
the reader that sent it.`,
		Example: `  llmtop serve model.gguf
  llmtop serve --listen tcp:127.0.0.1:7070 --parallel 4`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("serve takes one model file")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				opts.model = args[0]
			}
			return opts.serve(c.Context(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	opts.settings.bindEngine(flags)
	opts.recording.bind(flags)
	flags.StringVar(&opts.listening.at, "listen", socket.Address("llmtop"), "`ADDRESS` to listen at, unix:PATH or tcp:HOST:PORT (default: a socket that attach finds)")
	flags.Lookup("listen").DefValue = "" // its name contains the process ID
	bindToken(flags, &opts.listening.tokenFile)
	opts.exports.bind(flags)
	useConfig(c, &opts.config, &opts.tables, func() error {
		return cmp.Or(opts.recording.check(), opts.exports.check(), opts.settings.checkEngine())
	})
	return c
}

// serve runs until a signal ends it.
func (o *runOptions) serve(ctx context.Context, notes io.Writer) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	l, err := o.newLocal(ctx, nil, nil)
	if err != nil {
		return ignoreClosed(err)
	}
	return l.run(ctx, func(ctx context.Context) error {
		fmt.Fprintf(notes, "listening: llmtop attach %s\n", l.server.Address())
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, errClosed) {
			return err
		}
		return nil
	})
}
