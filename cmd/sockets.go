package cmd

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/runtime/source/socket"
)

// discoverInterval is the interval between searches for new event sockets.
const discoverInterval = 2 * time.Second

// discover adds new event sockets until ctx ends.
func (a *attached) discover(ctx context.Context) error {
	tick := time.NewTicker(discoverInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := a.addDiscovered(ctx); err != nil {
			return err
		}
	}
}

// addDiscovered adds the event sockets that are not watched yet.
func (a *attached) addDiscovered(ctx context.Context) error {
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
