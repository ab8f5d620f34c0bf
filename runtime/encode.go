package runtime

import (
	"context"
	"slices"
	"time"
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

// Size is how many tokens a text takes as the prompt of a request with Special, and how many the context of a request holds. It waits
// until the model is loaded. Errors: that of ctx, ErrStopped.
func (s *Scheduler) Size(ctx context.Context, text string) (tokens, context int, err error) {
	d, err := s.loaded(ctx)
	if err != nil {
		return 0, 0, err
	}
	return len(d.encode(nil, &Request{Text: text, Special: true})), d.engine.Context(), nil
}

// encode turns the text of a request into token ids. A text whose first special token is the one that the model wants in front anyway, as
// chat templates make them, has it once.
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
