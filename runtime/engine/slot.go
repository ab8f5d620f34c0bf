package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// slot is one of the engine's sequences and the request that occupies it, if any.
type slot struct {
	index   int32
	handle  *Handle
	sampler Sampler

	tokens []int32    // prompt and generated tokens
	prompt int        // prompt tokens
	done   int        // tokens in the KV cache
	cached int        // tokens that were in the KV cache before the request
	pinned event.Time // since when the request occupies KV cells

	// Set while the slot is vacant: the engine still holds the first kept tokens of the last request, which ended at
	// vacatedAt.
	kept      int
	vacatedAt event.Time

	lastTokenAt event.Time // time of the last token
	due         event.Time // earliest start of the next token under pacing
	rows        int        // rows in the last batch that included the slot
	row         int        // index of the last of these rows
	wantsLogits bool       // that row returns logits
	sampled     int64      // ns in the sampler for the last token
	logp        float32    // log probability of the last token
	top         []event.TopProb

	// Cost of the prompt so far, in ns.
	embed, body int64
	layers      []LayerTime
	untimed     bool // the engine did not time its layers in a batch with prompt rows
}

// decoding reports whether the prompt has been processed.
func (s *slot) decoding() bool { return len(s.tokens) > s.prompt }

// generated returns the number of tokens generated so far.
func (s *slot) generated() int { return len(s.tokens) - s.prompt }

// schedule sets the earliest start of the next token: one interval after the start due for this token, which keeps the
// mean pace, but not before this token came, so that a delay is not followed by a burst.
func (s *slot) schedule(interval event.Time) {
	if s.generated() == 1 {
		s.due = s.lastTokenAt
	}
	s.due = max(s.due+interval, s.lastTokenAt)
}

// repace adjusts the due time after a change of pace or a pause. It does not undo waiting time that has already passed.
func (s *slot) repace(now, interval event.Time, resumed bool) {
	s.due = max(s.lastTokenAt+interval, min(s.due, now))
	if resumed {
		s.due = max(s.due, now)
	}
}

// admit dispatches waiting requests, oldest first, while slots are free.
func (d *driver) admit() {
	for len(d.running) < len(d.slots) && !d.suspended {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.mu.Unlock()
			return
		}
		h := d.queue[0]
		d.queue = slices.Delete(d.queue, 0, 1)
		d.mu.Unlock()
		d.dispatch(h)
	}
}

// dispatch starts a request: it tokenizes the prompt on the scheduler's goroutine and assigns a slot.
func (d *driver) dispatch(h *Handle) {
	now := d.clock.Now()
	d.sink.Emit(event.Event{Kind: event.KindRequest, At: now, Req: h.ID, State: event.StateDispatched, Layer: -1})
	loading := max(d.loadTo-max(h.enqueued, d.loadFrom), 0) // part of the wait during which the model was loading
	if loading > 0 {
		d.stage(h.ID, event.StageLoad, -1, d.loadTo, int64(loading), 0)
	}
	d.stage(h.ID, event.StageQueue, -1, now-h.paced, int64(now-h.enqueued-loading-h.paced), 0)
	if h.paced > 0 {
		d.stage(h.ID, event.StagePacedByOthers, -1, now, int64(h.paced), 0)
	}

	d.prompt = append(d.prompt[:0], h.request.IDs...)
	if len(d.prompt) == 0 {
		d.prompt = d.encode(d.prompt, &h.request)
	}
	end := d.clock.Now()
	d.stage(h.ID, event.StageTokenize, -1, end, int64(end-now), len(d.prompt))
	if err := d.checkPrompt(d.prompt); err != nil {
		d.log("request #%d failed: %v", h.ID, err)
		d.finish(h, Result{
			State: event.StateFailed, Err: err,
			Outcome: event.Outcome{Reason: err.Error(), Prompt: len(d.prompt)},
		})
		return
	}
	d.compare(h)
	s, cached := d.reuse(h, d.prompt)
	*s = slot{
		index: s.index, layers: s.layers, tokens: append(s.tokens[:0], d.prompt...), handle: h, prompt: len(d.prompt),
		done: cached, cached: cached, pinned: end,
	}
	d.usedCells += int64(cached)
	s.tokens = slices.Grow(s.tokens, d.maxGenerated(s))
	s.sampler = d.opt.Sampler(h.request.Params, d.model.Vocab)
	clear(s.layers)
	d.running = append(d.running, s)
	if h.request.Picks {
		d.apply()
	}
}

// checkPrompt checks a prompt against the model's vocabulary and context.
func (d *driver) checkPrompt(prompt []int32) error {
	if len(prompt) == 0 {
		return ErrEmptyPrompt
	}
	if n := d.engine.Context(); len(prompt) > n {
		return fmt.Errorf("%w: %d tokens, the context holds %d", ErrPromptTooLong, len(prompt), n)
	}
	for _, id := range prompt {
		if id < 0 || int(id) >= d.model.Vocab {
			return fmt.Errorf("%w: %d, the vocabulary has %d", ErrUnknownToken, id, d.model.Vocab)
		}
	}
	return nil
}

// maxGenerated returns the maximum number of tokens that a slot can generate. The last token needs no space in the
// context.
func (d *driver) maxGenerated(s *slot) int {
	n := d.engine.Context() - s.prompt + 1
	if limit := s.handle.request.MaxTokens; limit > 0 {
		n = min(n, limit)
	}
	return n
}

// reap ends running requests that were cancelled.
func (d *driver) reap() {
	for _, s := range slices.Clone(d.running) {
		if s.handle.cancelled.Load() {
			d.release(s, Result{State: event.StateCancelled, Outcome: event.Outcome{Reason: reasonCancelled}})
		}
	}
}

// release ends the request in a slot and frees the slot.
func (d *driver) release(s *slot, r Result) {
	h := s.handle
	d.vacate(s, r.State != event.StateFailed)
	d.usedCells -= int64(s.done)
	if s.done > 0 {
		d.reportKV(int64(s.done), d.clock.Now()-s.pinned)
	}
	if d.activeHooks.Experts {
		d.reportExperts()
	}
	d.reportOps(d.clock.Now())
	r.Prompt, r.Cached, r.Generated = s.prompt, s.cached, s.generated()
	r.IDs = slices.Clone(s.tokens[s.prompt:])
	r.Text = d.text(r.IDs, r.Reason == reasonStop)
	s.handle, s.sampler = nil, nil
	d.running = slices.DeleteFunc(d.running, func(o *slot) bool { return o == s })
	d.changed.Store(true)
	if r.Err != nil {
		d.log("request #%d failed: %s", h.ID, r.Reason)
	}
	d.finish(h, r)
}

// text returns the text of the tokens, without the last one if it ended the text.
func (d *driver) text(ids []int32, ended bool) string {
	if ended {
		ids = ids[:len(ids)-1]
	}
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(d.engine.Piece(id))
	}
	return b.String()
}
