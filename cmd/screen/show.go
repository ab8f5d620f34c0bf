package screen

import (
	"context"
	"os"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/plain"
)

// Visible reports whether there is a terminal, a reader of plain lines, or a recording to show live data on.
func (v *View) Visible() bool { return v.Plain || v.Camera.Enabled() || console.HasScreen() }

// Show shows or records the screen, or prints plain lines, until the user or a signal ends it.
func (v *View) Show(ctx context.Context, cfg ui.Config) error {
	switch {
	case v.Camera.Enabled():
		return exit.IgnoreClosed(v.Camera.live(ctx, cfg))
	case v.Plain:
		return exit.IgnoreClosed(plain.Run(ctx, plain.Config{
			Sessions: cfg.Sessions, Alerts: cfg.Alerts, Interval: v.summary, Note: cfg.Note, Input: os.Stdin, Output: console.Out,
			Ended: func() bool {
				return cfg.Replay != nil && cfg.Replay.Status().State == recording.Ended && !console.IsTerminal(os.Stdin)
			},
		}))
	}
	return exit.IgnoreClosed(ui.Run(ctx, cfg))
}
