package wire

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// tokens emits the tokens of the line.
func (d *Decoder) tokens(emit func(event.Event)) {
	c := &d.columns
	var text string // of all, if it is little
	if len(c.bytes) <= maxShared {
		text = string(c.bytes)
	}
	picks, top := share(c.experts), share(c.candidates)
	for i, at := range c.at {
		e := event.Event{
			Kind: event.KindToken, Layer: -1, At: event.Time(at), Req: event.RequestID(of(c.req, i, 0)),
			ID: narrow(of(c.id, i, absent), -1), N: narrow(of(c.n, i, absent), 1), Index: narrow(of(c.index, i, absent), -1),
			Step: uint64(max(of(c.step, i, absent), 0)),
		}
		if l := of(c.logp, i, math.NaN()); !math.IsNaN(l) && !math.IsInf(float64(float32(l)), 0) {
			e.LogP, e.HasLogP = float32(l), true
		}
		if s := of(c.text, i, span{}); s.to > s.from {
			if text != "" {
				e.Text = text[s.from:s.to]
			} else {
				e.Text = string(c.bytes[s.from:s.to])
			}
		}
		if s := of(c.picks, i, span{}); s.to > s.from {
			e.Picks = piece(picks, c.experts, s)
		}
		if s := of(c.top, i, span{}); s.to > s.from {
			e.Top = piece(top, c.candidates, s)
		}
		e.Split = of(c.split, i, event.Split{})
		if w := of(c.sample, i, absent); w != absent && e.Split == (event.Split{}) {
			e.Split = d.splitOf(e.Step)
			e.Split.Sample = uint32(min(w, math.MaxUint32))
		}
		emit(e)
	}
}

// maxShared is how much the tokens of a line have in one piece of memory: bytes of text, picks, alternatives. Whoever keeps one of them for
// long keeps the whole piece.
const maxShared = 1024

// share copies what the tokens of a line have if it is little.
func share[T any](all []T) []T {
	if len(all) > maxShared {
		return nil
	}
	return slices.Clone(all)
}

// piece is the part of one token, of what they share or else of its own.
func piece[T any](shared, all []T, s span) []T {
	if shared == nil {
		return slices.Clone(all[s.from:s.to])
	}
	return shared[s.from:s.to:s.to]
}

// steps emits the forward passes of the line.
func (d *Decoder) steps(emit func(event.Event)) {
	c := &d.columns
	for i, at := range c.at {
		e := event.Event{
			Kind: event.KindStep, Layer: -1, At: event.Time(at), Dur: of(c.dur, i, 0), Step: uint64(max(of(c.step, i, absent), 0)),
			N: narrow(of(c.n, i, absent), 0), Prompt: narrow(of(c.prompt, i, absent), 0), Split: of(c.split, i, event.Split{}),
			Data: d.event.Data,
		}
		d.remember(e.Step, e.Split)
		emit(e)
	}
}

// remember keeps where the time of a pass went.
func (d *Decoder) remember(step uint64, split event.Split) {
	if step == 0 || split == (event.Split{}) {
		return
	}
	if d.passes == nil {
		d.passes = make([]pass, remembered)
	}
	d.passes[step%remembered] = pass{step, split}
}

// splitOf is where the time of a pass went, if it was told and not too long ago.
func (d *Decoder) splitOf(step uint64) event.Split {
	if d.passes == nil || step == 0 {
		return event.Split{}
	}
	if p := &d.passes[step%remembered]; p.number == step {
		return p.split
	}
	return event.Split{}
}

// narrow is v as a number of an event, or what it means that there is none.
func narrow(v int64, missing int32) int32 {
	if v < 0 {
		return missing
	}
	return int32(min(v, math.MaxInt32))
}
