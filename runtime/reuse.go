package runtime

import "github.com/llmtop/llmtop/profiler/event"

// stageCache is what looking up and cutting a kept sequence is called in the events.
const stageCache = "cache_lookup"

// reuse finds a vacant slot for a prompt, and cuts what the slot still holds to what the prompt begins with: so many tokens need not be
// computed. At least the last token of a prompt is, since its logits are wanted.
//
// A slot of which the prompt goes on with half or more is taken, the one that saves the most; otherwise the one that was left the
// longest ago, so that a few tokens that all prompts share do not cost another conversation its cache.
func (d *driver) reuse(h *Handle, prompt []int32) (s *slot, cached int) {
	began := d.clock.Now()
	on, most := false, 0
	for i := range d.slots {
		v := &d.slots[i]
		if v.handle != nil {
			continue
		}
		n := 0
		if !h.request.Fresh {
			n = common(v.tokens[:v.held], prompt[:len(prompt)-1])
		}
		goesOn := n > 0 && 2*n >= v.held
		switch {
		case s == nil, goesOn && !on, goesOn && n > most, !goesOn && !on && v.left < s.left:
			s, on, most = v, goesOn, n
		}
	}
	if s.held == 0 {
		return s, 0
	}
	if most == 0 {
		d.engine.Release(int(s.index))
		return s, 0
	}
	cached = d.keeper.Keep(int(s.index), most)
	end := d.clock.Now()
	d.sink.Emit(event.Event{
		Kind: event.KindStage, At: end, Dur: int64(end - began), Req: h.ID, Text: stageCache, Layer: -1, N: int32(cached),
	})
	return s, cached
}

// common is the number of tokens with which both sequences begin.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// leave frees a slot. What its request has computed stays in it, if that is sound and somebody may go on from it; its cells count as
// free, since any request may have them.
func (d *driver) leave(s *slot, sound bool) {
	if d.keeper != nil && sound {
		s.held, s.left = s.done, d.clock.Now()
		return
	}
	s.held, s.left = 0, 0
	d.engine.Release(int(s.index))
}
