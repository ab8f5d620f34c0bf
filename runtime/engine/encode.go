package engine

import (
	"context"
	"slices"
	"time"
)

// Encode converts text to token ids of the loaded model, with the tokens that the model requires in front. It waits
// until the model is loaded. Errors: that of ctx, ErrStopped.
func (s *Scheduler) Encode(ctx context.Context, text string) ([]int32, error) {
	d, err := s.loaded(ctx)
	if err != nil {
		return nil, err
	}
	return d.engine.Encode(nil, text, false), nil
}

// Size returns the number of tokens of text as the prompt of a request with Special set, and the context size of a
// request. It waits until the model is loaded. Errors: that of ctx, ErrStopped.
func (s *Scheduler) Size(ctx context.Context, text string) (tokens, context int, err error) {
	d, err := s.loaded(ctx)
	if err != nil {
		return 0, 0, err
	}
	return len(d.encode(nil, &Request{Text: text, Special: true})), d.engine.Context(), nil
}

// encode converts the text of a request to token ids. If the text already starts with the BOS token, as chat templates
// do, BOS is not added a second time.
func (d *driver) encode(dst []int32, r *Request) []int32 {
	ids := d.engine.Encode(dst, r.Text, r.Special)
	if !r.Special || len(ids) < 2 || ids[0] != ids[1] {
		return ids
	}
	if front := d.engine.Encode(nil, "", false); len(front) > 0 && front[0] == ids[0] {
		ids = slices.Delete(ids, 0, 1)
	}
	return ids
}

// loadPoll is the polling interval while waiting for the model to load.
const loadPoll = time.Millisecond

// loaded waits until the model is loaded.
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
		case <-time.After(loadPoll):
		}
	}
}
