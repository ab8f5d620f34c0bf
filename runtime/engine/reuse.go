package engine

import "github.com/llmtop/llmtop/profiler/event"

// stageCache names the stage of looking up and truncating a cached sequence in events.
const stageCache = "cache_lookup"

// reuse picks a vacant slot for a prompt and truncates the sequence that it still holds to the common prefix, which is
// then not computed again. At least the last token of the prompt is computed, because its logits are needed.
//
// A slot qualifies if the prompt extends at least half of its sequence; the longest common prefix wins. If none
// qualifies, the slot vacated the longest ago is taken, so that a short prefix common to all prompts does not evict
// another conversation's cache.
func (d *driver) reuse(h *Handle, prompt []int32) (s *slot, cached int) {
	began := d.clock.Now()
	extends, most := false, 0
	for i := range d.slots {
		v := &d.slots[i]
		if v.handle != nil {
			continue
		}
		n := 0
		if !h.request.Fresh {
			n = common(v.tokens[:v.kept], prompt[:len(prompt)-1])
		}
		extended := n > 0 && 2*n >= v.kept
		switch {
		case s == nil, extended && !extends, extended && n > most, !extended && !extends && v.vacatedAt < s.vacatedAt:
			s, extends, most = v, extended, n
		}
	}
	if s.kept == 0 {
		return s, 0
	}
	if most == 0 {
		d.engine.Release(int(s.index))
		return s, 0
	}
	cached = d.engine.Keep(int(s.index), most)
	end := d.clock.Now()
	d.sink.Emit(event.Event{
		Kind: event.KindStage, At: end, Dur: int64(end - began), Req: h.ID, Text: stageCache, Layer: -1, N: int32(cached),
	})
	return s, cached
}

// common returns the length of the common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// vacate vacates a slot. If sound is set, its computed tokens stay for reuse; their cells count as free, since any
// request may take them.
func (d *driver) vacate(s *slot, sound bool) {
	if d.opt.Reuse && sound {
		s.kept, s.vacatedAt = s.done, d.clock.Now()
		return
	}
	s.kept, s.vacatedAt = 0, 0
	d.engine.Release(int(s.index))
}
