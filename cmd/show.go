package cmd

import (
	"context"
	"os"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/plain"
)

// live reports whether there is a terminal or a reader of plain lines to show live data to.
func (v *view) live() bool { return v.plain || hasScreen() }

// open opens the screen, or prints plain lines, until the user or a signal closes it.
func (v *view) open(ctx context.Context, cfg ui.Config) error {
	if v.plain {
		return ignoreClosed(plain.Run(ctx, v.plainConfig(&cfg)))
	}
	return ignoreClosed(ui.Run(ctx, cfg))
}

// plainConfig returns the configuration of plain lines for that of a screen.
func (v *view) plainConfig(cfg *ui.Config) plain.Config {
	one := []plain.EngineFeed{{Snapshots: cfg.Snapshots}}
	return plain.Config{
		Alerts: cfg.Alerts, Interval: v.summary, Note: cfg.Note, Input: os.Stdin, Output: consoleOut,
		Engines: func() []plain.EngineFeed {
			if cfg.Sessions == nil {
				return one
			}
			all := cfg.Sessions()
			out := make([]plain.EngineFeed, len(all))
			for i, s := range all {
				out[i] = plain.EngineFeed{Snapshots: s.Snapshots}
				if len(all) > 1 {
					out[i].Name = s.Name
				}
			}
			return out
		},
		Ended: func() bool {
			return cfg.Replay != nil && cfg.Replay.Status().State == recording.Ended && !isTerminal(os.Stdin)
		},
	}
}
