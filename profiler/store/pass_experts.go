package store

import (
	"math/bits"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// passExperts counts the experts that a decode pass of several tokens reads: each one once, however many tokens picked
// it.
type passExperts struct {
	alone   uint64   // the last decode pass, if it was of one token
	step    uint64   // 0: no pass is counted
	missing int      // tokens of it whose picks have not arrived
	seen    []uint64 // bit set by layer * experts + expert
}

// begin starts with a forward pass. Its tokens follow it.
func (p *passExperts) begin(e *event.Event) {
	p.alone, p.step = 0, 0
	switch {
	case e.Prompt > 0:
	case e.N == 1:
		p.alone = e.Step
	case e.N > 1:
		p.step, p.missing = e.Step, int(e.N)
		clear(p.seen)
	}
}

// add counts the picks of a token, checked by routing.addToken. With the last token of the pass it returns the distinct
// picks of all tokens, and the picks of one.
func (p *passExperts) add(e *event.Event, m *event.Model) (distinct, single int, whole bool) {
	if p.step == 0 || e.Step != p.step {
		return 0, 0, false
	}
	if n := (m.Layers*m.Experts + 63) / 64; len(p.seen) != n {
		p.seen = make([]uint64, n)
	}
	for i, x := range e.Picks {
		if int(x) < m.Experts { // a layer may have none
			bit := i/m.ExpertsUsed*m.Experts + int(x)
			p.seen[bit/64] |= 1 << (bit % 64)
			single++
		}
	}
	if p.missing--; p.missing > 0 {
		return 0, 0, false
	}
	p.step = 0
	for _, w := range p.seen {
		distinct += bits.OnesCount64(w)
	}
	return distinct, single, true
}

// sized reports whether it is known what a decode pass reads. The sizes of some caches are not: those of a sliding window.
func sized(s *state) bool { return s.model.WeightBytes > 0 && s.model.KVBytes > 0 }

// readAlone returns the bytes that the decode pass of one token reads.
func readAlone(s *state) float64 {
	return float64(s.model.WeightBytes) + float64(s.model.KVBytes)*float64(s.kv.Used)
}

// readsOf returns what the decode passes of w read on average: experts of all layers, and bytes of weights and KV cache,
// without picks those of one token. Of passes with several tokens, those whose picks are known stand for all.
func readsOf(s *state, w *secondWork) (experts event.Reading, bytes float64) {
	m := &s.model
	experts, bytes = event.Absent(event.NotReported), readAlone(s)
	if m.Experts <= 0 || s.routing.experts == nil || !s.engine.Caps.Has(event.CapSteps) {
		return experts, bytes
	}
	single := float64(s.routing.experts.layers * m.ExpertsUsed)
	switch {
	case w.decodePasses == 0:
		experts = event.Absent(event.NotYet)
	case w.batchPasses == 0:
		experts = event.DerivedValue(single)
	case w.countedPasses > 0:
		more := float64(w.distinctPicks-w.singlePicks) / float64(w.countedPasses) * float64(w.batchPasses) / float64(w.decodePasses)
		experts = event.DerivedValue(single + more)
		expert, _ := metric.ExpertBytes(float64(m.Bytes), float64(m.WeightBytes), m.Experts, m.ExpertsUsed, s.routing.experts.layers*m.Experts)
		bytes += more * expert
	}
	return experts, bytes
}
