package cmd

import (
	"context"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime/imatrix"
)

// addCounts shows what a file of llama-imatrix has counted as an engine of its own: it is not of the requests of any server.
func (a *attached) addCounts(ctx context.Context, path string) error {
	source, err := imatrix.New(path, a.clock)
	if err != nil {
		return usagef("--imatrix: %w", err)
	}
	s := a.session(path, store.Options{Now: a.clock.Now, Queue: serverQueue})
	if err := a.record(s, trace.Source{Name: path}); err != nil {
		return err
	}
	s.add("show "+path, source.Run)
	a.group.Go(func() error { return a.watch(ctx, s, path) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engines = append(a.engines, engine{at: path, session: s})
	return nil
}
