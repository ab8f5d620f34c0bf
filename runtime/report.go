package runtime

import (
	"fmt"
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// reportEvery is how often the state of the KV cache and the experts' counts are told while requests run.
const reportEvery = event.Time(100 * time.Millisecond)

// reportOpsEvery is how often the times of operations are: there may be thousands.
const reportOpsEvery = event.Time(500 * time.Millisecond)

// introduce tells what the engine is and what it does.
func (d *driver) introduce(state event.EngineState, reason string) {
	e := d.info
	e.State, e.Reason = state, reason
	e.Epoch, e.Pace = d.clock.Epoch(), d.pacing
	d.sink.Emit(event.Event{Kind: event.KindEngine, At: d.clock.Now(), Layer: -1, Data: &e})
}

// log emits a line of the engine's log.
func (d *driver) log(format string, args ...any) {
	d.sink.Emit(event.Event{Kind: event.KindLog, At: d.clock.Now(), Layer: -1, Text: fmt.Sprintf(format, args...)})
}

// stage emits that a stage ended at the given time after dur ns, having covered n tokens.
func (d *driver) stage(req event.RequestID, stage event.Stage, layer int, at event.Time, dur int64, n int) {
	d.sink.Emit(event.Event{
		Kind: event.KindStage, At: at, Dur: dur, Req: req, Stage: stage, Layer: int16(layer), N: int32(n),
	})
}

// split sums the engine's times over the layers; Sample is left to the caller.
func (d *driver) split() event.Split {
	t := &d.batch.Time
	var sum LayerTime
	for _, l := range t.Layers {
		sum.Attention += l.Attention
		sum.Router += l.Router
		sum.Experts += l.Experts
	}
	return event.Split{
		Embed: saturate(t.Embed), Head: saturate(t.Head),
		Attention: saturate(sum.Attention), Router: saturate(sum.Router), Experts: saturate(sum.Experts),
	}
}

// saturate is ns as a part of a Split.
func saturate(ns int64) uint32 { return uint32(min(max(ns, 0), math.MaxUint32)) }

// reportStep tells of a forward pass. It goes before the tokens that the pass made.
func (d *driver) reportStep(start, end event.Time, split event.Split, sampled int64) {
	prompt := 0
	for _, r := range d.batch.Rows {
		if r.Prompt {
			prompt++
		}
	}
	split.Sample = saturate(sampled)
	d.sink.Emit(event.Event{
		Kind: event.KindStep, At: end, Dur: int64(end - start), Step: d.steps, Layer: -1,
		N: int32(len(d.batch.Rows) - prompt), Prompt: int32(prompt), Split: split,
	})
}

// reportFirst tells where the time of a prompt went. Work that was spread over several batches is told as if it had been done
// in one go, ending with the last of them. The layers' times are told only if they are all known; tokens from the cache are not covered.
func (d *driver) reportFirst(s *slot) {
	id, n, head := s.handle.ID, s.prompt-s.cached, d.batch.Time.Head
	ended := s.at - event.Time(head+s.sampled)
	at := ended - event.Time(s.body)
	if s.embed > 0 || !s.untold {
		d.stage(id, event.StageEmbed, -1, at, s.embed, n)
	}
	d.stage(id, event.StagePrompt, -1, ended, s.body, n)
	if !s.untold {
		for i, l := range s.layers {
			at += event.Time(l.Attention)
			d.stage(id, event.StageAttention, i, at, l.Attention, n)
			at += event.Time(l.Router)
			d.stage(id, event.StageRouter, i, at, l.Router, n)
			at += event.Time(l.Experts)
			d.stage(id, event.StageExperts, i, at, l.Experts, n)
		}
	}
	d.stage(id, event.StageFirst, -1, s.at, head+s.sampled, 1)
}

// reportToken tells of the last token of a sequence. Its picks are those of the pass that made it; a token that ends the text
// has no text of its own.
func (d *driver) reportToken(s *slot, split event.Split, ended bool) {
	r := &s.handle.request
	id := s.tokens[len(s.tokens)-1]
	e := event.Event{
		Kind: event.KindToken, At: s.at, Req: s.handle.ID, Layer: -1, ID: id, N: 1,
		Index: int32(s.generated() - 1), Step: d.steps, Split: split, LogP: s.logp, HasLogP: true, Top: s.top,
	}
	if r.SendText && !ended {
		e.Text = d.engine.Piece(id)
	}
	if r.Picks && len(d.batch.Picks) > s.row {
		picks := d.batch.Picks[s.row]
		e.Picks = d.picks.take(len(picks))
		copy(e.Picks, picks)
	}
	d.sink.Emit(e)
}

// reportState tells of the KV cache and the experts, now and then.
func (d *driver) reportState(now event.Time) {
	if now-d.reported < reportEvery && d.reported != 0 {
		return
	}
	d.reported = now
	d.reportKV(0, 0)
	if d.hooked.Experts {
		d.reportExperts()
	}
	if now-d.reportedOps >= reportOpsEvery {
		d.reportOps(now)
	}
}

// reportKV tells how full the KV cache is, and how long the cells were pinned that have just been freed.
func (d *driver) reportKV(freed int64, pinned event.Time) {
	kv := &d.kv.take(1)[0]
	*kv = event.KV{
		Used: d.cells, Total: int64(len(d.slots)) * int64(d.engine.Context()), Freed: freed, Residency: int64(pinned),
	}
	d.sink.Emit(event.Event{Kind: event.KindKV, At: d.clock.Now(), Layer: -1, Data: kv})
}

// reportExperts tells how often the router picked each expert so far.
func (d *driver) reportExperts() {
	if x := d.engine.Router(); x != nil {
		d.sink.Emit(event.Event{Kind: event.KindExperts, At: d.clock.Now(), Layer: -1, Data: x})
	}
}

// reportOps tells what the engine has timed of its operations so far, if that is wanted.
func (d *driver) reportOps(now event.Time) {
	p, ok := d.engine.(Profiled)
	if !d.hooked.Ops || !ok {
		return
	}
	if ops := p.Ops(); ops != nil {
		d.reportedOps = now
		d.sink.Emit(event.Event{Kind: event.KindOps, At: d.clock.Now(), Layer: -1, Data: ops})
	}
}
