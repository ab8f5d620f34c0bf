package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// reportEvery is the interval of KV cache and expert reports while requests run.
const reportEvery = event.Time(100 * time.Millisecond)

// reportOpsEvery is the interval of reports of operation times. It is longer because there may be thousands of
// operations.
const reportOpsEvery = event.Time(500 * time.Millisecond)

// reportEngine emits the engine's description and state.
func (d *driver) reportEngine(state event.EngineState, reason string) {
	e := d.info
	e.State, e.Reason = state, reason
	e.Epoch, e.Pace = d.clock.Epoch(), d.appliedPace
	d.sink.Emit(event.Event{Kind: event.KindEngine, At: d.clock.Now(), Layer: -1, Data: &e})
}

// log emits a line of the engine log.
func (d *driver) log(format string, args ...any) {
	d.sink.Emit(event.Event{Kind: event.KindLog, At: d.clock.Now(), Layer: -1, Text: fmt.Sprintf(format, args...)})
}

// stage emits that a stage ended at the given time after dur ns, having covered n tokens.
func (d *driver) stage(req event.RequestID, stage event.Stage, layer int, at event.Time, dur int64, n int) {
	d.sink.Emit(event.Event{
		Kind: event.KindStage, At: at, Dur: dur, Req: req, Stage: stage, Layer: int16(layer), N: int32(n),
	})
}

// split sums the times of the batch over the layers. The caller sets Sample.
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

// saturate clamps ns to the range of a Split field.
func saturate(ns int64) uint32 { return uint32(min(max(ns, 0), math.MaxUint32)) }

// reportStep emits a forward pass. It is called before the tokens of the pass are emitted.
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

// reportFirst emits the stages of prompt processing. Work spread over several batches is reported as one continuous run
// that ends with the last batch. Times per layer are emitted only if every batch measured them. Cached tokens are not
// counted.
func (d *driver) reportFirst(s *slot) {
	id, n, head := s.handle.ID, s.prompt-s.cached, d.batch.Time.Head
	ended := s.lastTokenAt - event.Time(head+s.sampled)
	at := ended - event.Time(s.body)
	if s.embed > 0 || !s.untimed {
		d.stage(id, event.StageEmbed, -1, at, s.embed, n)
	}
	d.stage(id, event.StagePrompt, -1, ended, s.body, n)
	if !s.untimed {
		for i, l := range s.layers {
			at += event.Time(l.Attention)
			d.stage(id, event.StageAttention, i, at, l.Attention, n)
			at += event.Time(l.Router)
			d.stage(id, event.StageRouter, i, at, l.Router, n)
			at += event.Time(l.Experts)
			d.stage(id, event.StageExperts, i, at, l.Experts, n)
		}
	}
	d.stage(id, event.StageFirst, -1, s.lastTokenAt, head+s.sampled, 1)
}

// reportToken emits the last token of a sequence, with the picks of the pass that generated it, those of a layer in
// ascending order: such picks are small when encoded. A token that ends the text has no text itself.
func (d *driver) reportToken(s *slot, split event.Split, ended bool) {
	r := &s.handle.request
	id := s.tokens[len(s.tokens)-1]
	e := event.Event{
		Kind: event.KindToken, At: s.lastTokenAt, Req: s.handle.ID, Layer: -1, ID: id, N: 1,
		Index: int32(s.generated() - 1), Step: d.steps, Split: split, LogP: s.logp, HasLogP: true, Top: s.top,
	}
	if r.SendText && !ended {
		e.Text = d.engine.Piece(id)
	}
	if r.Picks && len(d.batch.Picks) > s.row {
		picks := d.batch.Picks[s.row]
		e.Picks = d.picks.take(len(picks))
		copy(e.Picks, picks)
		for layer := range slices.Chunk(e.Picks, max(d.model.ExpertsUsed, 1)) {
			slices.Sort(layer)
		}
	}
	e.Handover = saturate(int64(d.clock.Now() - e.At))
	d.sink.Emit(e)
}

// reportState emits the state of the KV cache, the experts and the operations, each at its interval.
func (d *driver) reportState(now event.Time) {
	if now-d.lastReport < reportEvery && d.lastReport != 0 {
		return
	}
	d.lastReport = now
	d.reportKV(0, 0)
	if d.activeHooks.Experts {
		d.reportExperts()
	}
	if now-d.lastOpsReport >= reportOpsEvery {
		d.reportOps(now)
	}
}

// reportKV emits the use of the KV cache, and the number and residency of the cells just freed.
func (d *driver) reportKV(freed int64, pinned event.Time) {
	kv := &d.kv.take(1)[0]
	*kv = event.KV{
		Used: d.usedCells, Total: int64(len(d.slots)) * int64(d.engine.Context()), Freed: freed, Residency: int64(pinned),
	}
	d.sink.Emit(event.Event{Kind: event.KindKV, At: d.clock.Now(), Layer: -1, Data: kv})
}

// reportExperts emits the router's picks per expert since load.
func (d *driver) reportExperts() {
	if x := d.engine.Router(); x != nil {
		d.sink.Emit(event.Event{Kind: event.KindExperts, At: d.clock.Now(), Layer: -1, Data: x})
	}
}

// reportOps emits the operation times since load, if Hooks.Ops is set.
func (d *driver) reportOps(now event.Time) {
	if !d.activeHooks.Ops {
		return
	}
	if ops := d.engine.Ops(); ops != nil {
		d.lastOpsReport = now
		d.sink.Emit(event.Event{Kind: event.KindOps, At: d.clock.Now(), Layer: -1, Data: ops})
	}
}
