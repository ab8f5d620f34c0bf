package cmd

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/runtime/socket"
)

// lookEvery is how often new engines are looked for.
const lookEvery = 2 * time.Second

// discover adds the engines of the well-known folder as they come.
func (a *attached) discover(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := a.find(ctx); err != nil {
			return err
		}
	}
}

// find adds the engines of the well-known folder that are not watched yet.
func (a *attached) find(ctx context.Context) error {
	found, err := socket.Discover()
	if err != nil {
		return err
	}
	for _, f := range found {
		if a.watches(f.Address) {
			continue
		}
		if err := a.add(ctx, f.Address); err != nil {
			return err
		}
	}
	return nil
}
