package runtime

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Encode turns text into the loaded model's token ids, with the tokens that it wants in front. It waits until the model is loaded. Errors: that
// of ctx, ErrStopped.
func (s *Scheduler) Encode(ctx context.Context, text string) ([]int32, error) {
	d, err := s.loaded(ctx)
	if err != nil {
		return nil, err
	}
	return d.engine.Encode(nil, text, false), nil
}

// Model is what was loaded. It waits for that, with the errors of Encode.
func (s *Scheduler) Model(ctx context.Context) (event.Model, error) {
	d, err := s.loaded(ctx)
	if err != nil {
		return event.Model{}, err
	}
	return d.engine.Model(), nil
}

// loadedRest is how often who waits for the model looks whether it is loaded.
const loadedRest = time.Millisecond

func (s *Scheduler) loaded(ctx context.Context) (*driver, error) {
	for {
		if d := s.ready.Load(); d != nil {
			return d, nil
		}
		s.mu.Lock()
		stopped := s.stopped
		s.mu.Unlock()
		if stopped != nil {
			return nil, stopped
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(loadedRest):
		}
	}
}
