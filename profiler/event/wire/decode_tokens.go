package wire

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// emitTokens emits the tokens of the line.
func (d *Decoder) emitTokens(emit func(event.Event)) {
	c := &d.columns
	var text string // of all tokens, if it is short
	if len(c.bytes) <= maxShared {
		text = string(c.bytes)
	}
	picks, top := cloneSmall(c.experts), cloneSmall(c.candidates)
	for i, at := range c.at {
		e := event.Event{
			Kind: event.KindToken, Layer: -1, At: event.Time(at), Req: event.RequestID(valueAt(c.req, i, 0)),
			ID: toInt32(valueAt(c.id, i, noValue), -1), N: toInt32(valueAt(c.n, i, noValue), 1), Index: toInt32(valueAt(c.index, i, noValue), -1),
			Step: uint64(max(valueAt(c.step, i, noValue), 0)), Choice: uint16(min(max(valueAt(c.choice, i, noValue), 0), math.MaxUint16)),
		}
		if l := valueAt(c.logp, i, math.NaN()); !math.IsNaN(l) && !math.IsInf(float64(float32(l)), 0) {
			e.LogP, e.HasLogP = float32(l), true
		}
		if s := valueAt(c.text, i, byteRange{}); s.to > s.from {
			if text != "" {
				e.Text = text[s.from:s.to]
			} else {
				e.Text = string(c.bytes[s.from:s.to])
			}
		}
		if s := valueAt(c.picks, i, byteRange{}); s.to > s.from {
			e.Picks = part(picks, c.experts, s)
		}
		if s := valueAt(c.top, i, byteRange{}); s.to > s.from {
			e.Top = part(top, c.candidates, s)
		}
		e.Split = valueAt(c.split, i, event.Split{})
		if w := valueAt(c.sample, i, noValue); w != noValue && e.Split == (event.Split{}) {
			e.Split = d.splitOf(e.Step)
			e.Split.Sample = uint32(min(w, math.MaxUint32))
		}
		emit(e)
	}
}

// maxShared is how many bytes of text, picks or alternatives the tokens of a line share in one allocation. A consumer
// that keeps one of them keeps all.
const maxShared = 1024

// cloneSmall copies a list of at most maxShared elements; nil if it is longer.
func cloneSmall[T any](all []T) []T {
	if len(all) > maxShared {
		return nil
	}
	return slices.Clone(all)
}

// part returns the range of one token: of the shared copy, or a copy of its own.
func part[T any](shared, all []T, s byteRange) []T {
	if shared == nil {
		return slices.Clone(all[s.from:s.to])
	}
	return shared[s.from:s.to:s.to]
}

// emitSteps emits the forward passes of the line.
func (d *Decoder) emitSteps(emit func(event.Event)) {
	c := &d.columns
	for i, at := range c.at {
		e := event.Event{
			Kind: event.KindStep, Layer: -1, At: event.Time(at), Dur: valueAt(c.dur, i, 0), Step: uint64(max(valueAt(c.step, i, noValue), 0)),
			N: toInt32(valueAt(c.n, i, noValue), 0), Prompt: toInt32(valueAt(c.prompt, i, noValue), 0), Split: valueAt(c.split, i, event.Split{}),
			Data: d.event.Data,
		}
		d.storeSplit(e.Step, e.Split)
		emit(e)
	}
}

// storeSplit keeps the split time of a pass for later tokens.
func (d *Decoder) storeSplit(step uint64, split event.Split) {
	if step == 0 || split == (event.Split{}) {
		return
	}
	if d.passes == nil {
		d.passes = make([]pass, keptPasses)
	}
	d.passes[step%keptPasses] = pass{step, split}
}

// splitOf returns the split time of a pass, if it was received and is recent.
func (d *Decoder) splitOf(step uint64) event.Split {
	if d.passes == nil || step == 0 {
		return event.Split{}
	}
	if p := &d.passes[step%keptPasses]; p.number == step {
		return p.split
	}
	return event.Split{}
}

// toInt32 converts v, or returns missing if v is negative.
func toInt32(v int64, missing int32) int32 {
	if v < 0 {
		return missing
	}
	return int32(min(v, math.MaxInt32))
}
