package cmd

import (
	"context"
	"os"

	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/plain"
)

// live reports whether there is somebody to show things to as they happen: a terminal, or who reads plain lines.
func (v *view) live() bool { return v.plain || isTerminal(os.Stdout) && isTerminal(os.Stdin) }

// open opens the screen, or tells in plain lines, until the user or a signal closes it.
func (v *view) open(ctx context.Context, cfg ui.Config) error {
	if v.plain {
		return closedInOrder(plain.Run(ctx, v.told(&cfg)))
	}
	return closedInOrder(ui.Run(ctx, cfg))
}

// told is what plain lines tell of what a screen would show.
func (v *view) told(cfg *ui.Config) plain.Config {
	one := []plain.Source{{Snapshots: cfg.Snapshots}}
	return plain.Config{
		Alerts: cfg.Alerts, Interval: v.summary, Note: cfg.Note, Input: os.Stdin, Output: os.Stdout,
		Sources: func() []plain.Source {
			if cfg.Sessions == nil {
				return one
			}
			all := cfg.Sessions()
			out := make([]plain.Source, len(all))
			for i, s := range all {
				out[i] = plain.Source{Snapshots: s.Snapshots}
				if len(all) > 1 {
					out[i].Name = s.Name
				}
			}
			return out
		},
		Ended: func() bool {
			return cfg.Replay != nil && cfg.Replay.Status().State == trace.Ended && !isTerminal(os.Stdin)
		},
	}
}
