package engine

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
)

// step computes one batch and reports its results. A batch contains:
//
//   - one row for each request that decodes and is due;
//   - prompt rows in the rest of the batch, in order of dispatch, so that the oldest request gets its first token
//     soonest.
//     While any request decodes, prompts get at most Options.Mixed rows, which bounds the delay of its next token.
//
// The time of a batch counts as prompt time for each request that had prompt rows in it, since each of them waited for
// all of it. The TTFT components of one request therefore never overlap; those of different requests may.
func (d *driver) step(start event.Time) error {
	d.compose(start)
	began := d.clock.Now()
	err := d.engine.Forward(&d.batch)
	end := d.clock.Now()
	if err != nil {
		return d.failBatch(err)
	}
	d.steps++
	for _, s := range d.batched {
		s.done += s.rows
		d.usedCells += int64(s.rows)
	}
	last := d.sample(end)
	split := d.split()
	d.reportStep(start, last, split, int64(last-end))
	for _, s := range d.batched {
		d.advance(s, int64(end-began), split)
	}
	d.reportState(last)
	return nil
}

// failBatch ends the requests of a batch that the engine could not compute. It returns the error if the engine is
// broken.
func (d *driver) failBatch(err error) error {
	if errors.Is(err, ErrBroken) {
		return err
	}
	for _, s := range d.batched {
		d.release(s, Result{State: event.StateFailed, Outcome: event.Outcome{Reason: err.Error()}, Err: err})
	}
	return nil
}

// compose fills the batch.
func (d *driver) compose(now event.Time) {
	d.batch.Rows, d.batched = d.batch.Rows[:0], d.batched[:0]
	soon := now + d.interval()/2 // requests due soon are included, so that paced requests share batches
	budget := cap(d.batch.Rows)
	for _, s := range d.running {
		if !s.decoding() {
			continue
		}
		budget = d.opt.Mixed
		if s.due <= soon {
			d.reportPace(s, now)
			d.add(s, 1)
		}
	}
	budget = min(budget, cap(d.batch.Rows)-len(d.batch.Rows))
	for _, s := range d.running {
		if n := min(s.prompt-s.done, budget); n > 0 {
			if s.done == 0 {
				s.pinned = now
			}
			d.add(s, n)
			budget -= n
		}
	}
}

// reportPace emits how long pacing delayed a request. It includes the delay of the timer, but no other delay.
func (d *driver) reportPace(s *slot, now event.Time) {
	until := min(s.due+d.timerDelay, now)
	if until > s.lastTokenAt {
		d.stage(s.handle.ID, event.StagePace, -1, until, int64(until-s.lastTokenAt), 1)
	}
}

// add appends the next n tokens of a sequence to the batch.
func (d *driver) add(s *slot, n int) {
	for at := s.done; at < s.done+n; at++ {
		d.batch.Rows = append(d.batch.Rows, Row{
			Token: s.tokens[at], Pos: int32(at), Slot: s.index, Prompt: at < s.prompt, Logits: at == len(s.tokens)-1,
		})
	}
	s.rows, s.row = n, len(d.batch.Rows)-1
	s.wantsLogits = s.done+n == len(s.tokens)
	d.batched = append(d.batched, s)
}

// sample picks the next token of each sequence that has logits. It returns when the last sampler finished.
func (d *driver) sample(now event.Time) event.Time {
	next := 0
	for _, s := range d.batched {
		if !s.wantsLogits {
			continue
		}
		logits := d.batch.Logits[next]
		next++
		s.top = d.alternatives(s, logits)
		id, logp := s.sampler.Sample(logits, s.tokens)
		s.tokens = append(s.tokens, id)
		s.logp, s.lastTokenAt = logp, d.clock.Now()
		s.sampled = int64(s.lastTokenAt - now)
		now = s.lastTokenAt
	}
	return now
}

// alternatives returns the likeliest tokens, if the request wants them.
func (d *driver) alternatives(s *slot, logits []float32) []event.TopProb {
	r := &s.handle.request
	if r.TopLogprobs == 0 {
		return nil
	}
	top := s.sampler.TopLogprobs(d.tops.take(min(r.TopLogprobs, len(logits)))[:0], logits, r.TopLogprobs)
	if r.SendText {
		for i := range top {
			top[i].Text = d.engine.Piece(top[i].ID)
		}
	}
	return top
}

// advance updates a request after a batch: prompt processed, token generated, end reached.
func (d *driver) advance(s *slot, forward int64, split event.Split) {
	if s.generated() == 0 || s.wantsLogits && s.generated() == 1 {
		s.charge(&d.batch.Time, forward)
	}
	if !s.wantsLogits {
		return
	}
	if s.generated() == 1 {
		d.reportFirst(s)
	}
	split.Sample = saturate(s.sampled)
	reason := d.finishReason(s)
	d.reportToken(s, split, reason == reasonStop)
	s.schedule(d.interval())
	if reason != "" {
		d.release(s, Result{State: event.StateFinished, Outcome: event.Outcome{Reason: reason}})
	}
}

// charge adds a batch with prompt rows to the cost of the prompt. If the engine does not time its layers, all time
// outside embedding lookup and output head counts as layers.
func (s *slot) charge(t *BatchTime, forward int64) {
	s.embed += t.Embed
	if len(t.Layers) == 0 {
		s.body += max(forward-t.Embed-t.Head, 0)
		s.untimed = true
		return
	}
	for i, l := range t.Layers {
		s.body += l.Attention + l.Router + l.Experts
		sum := &s.layers[i]
		sum.Attention += l.Attention
		sum.Router += l.Router
		sum.Experts += l.Experts
	}
}

// finishReason returns the reason why the request ends with its last token, "" if it continues.
func (d *driver) finishReason(s *slot) string {
	r := &s.handle.request
	switch {
	case !r.IgnoreEOS && d.engine.IsEOG(s.tokens[len(s.tokens)-1]):
		return reasonStop
	case s.generated() == r.MaxTokens, len(s.tokens) > d.engine.Context():
		return reasonLength
	}
	return ""
}
