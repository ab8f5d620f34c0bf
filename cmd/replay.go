package cmd

import (
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/spf13/cobra"
)

func newReplayCommand() *cobra.Command {
	var opts playback.Options
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a recording",
		Long: `replay shows a recording (llmtop run --out FILE.llmtop) as it was live: at its own speed, faster,
slower, step by step, or from any point. With --headless, or if standard output is not a terminal,
it writes the report of the recording. With --out FILE.cast or FILE.svg it records the screen,
faster than real time (see llmtop cast --help).`,
		Example: `  llmtop replay session.llmtop --speed 10
  llmtop replay session.llmtop --out report.json
  llmtop replay session.llmtop --out session.cast --script demo.toml`,
		Args: takes(1, 1, "replay needs one recording: llmtop replay FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return opts.Run(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	opts.Bind(c)
	return c
}
