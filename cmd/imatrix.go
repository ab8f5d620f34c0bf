package cmd

import (
	"context"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/source/imatrix"
)

// addCounts shows the expert counts of a llama-imatrix file as a separate engine, since they belong to no request.
func (a *attached) addCounts(ctx context.Context, path string) error {
	source, err := imatrix.New(path, a.clock)
	if err != nil {
		return usagef("--imatrix: %w", err)
	}
	s := a.session(path, store.Options{Now: a.clock.Now, Queue: serverQueue})
	if err := a.record(s, recording.EngineEntry{Name: path}); err != nil {
		return err
	}
	s.add("show "+path, source.Run)
	a.group.Go(func() error { return a.watch(ctx, s, path) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, attachedEngine{at: path, session: s})
	return nil
}
