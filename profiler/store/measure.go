package store

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

const second = float64(time.Second)

// measure computes a request's metrics from its stamps.
func (s *state) measure(l *live) {
	v := &l.view
	if v.Polled {
		measurePolled(l)
		return
	}
	absent := event.Absent(event.NotYet)
	if v.State.Final() {
		absent = event.Absent(event.Undefined)
	}
	v.STIL, v.Paced = absent, event.From(float64(l.waits)/second)
	if v.Dispatched != 0 {
		v.STIL = seconds(int64(v.Dispatched - v.Enqueued))
	} else if v.Told || !s.engine.Caps.Has(event.CapQueue) {
		v.STIL = event.Absent(event.NotReported)
	}
	v.TTFT, v.Prefill, v.PrefillRate = absent, absent, absent
	v.Decode, v.TPOT, v.DecodeRate = absent, absent, absent
	v.E2EL, v.TPS, v.Overall = absent, absent, absent
	switch {
	case v.First != 0:
		s.measureFirst(l)
		measureDecode(l)
	case v.State.Final() && v.Generated > 0:
		measureWhole(v)
	}
	if !v.State.Final() {
		v.E2EL = absent
	}
	if l.late {
		lost := event.Absent(event.NotReported)
		v.STIL, v.TTFT, v.E2EL, v.TPS, v.Overall = lost, lost, lost, lost, lost
		v.Parts, v.Dominant, v.HitTarget = nil, Part{}, false
		if l.old {
			s.forgetOld(l)
		}
	}
	v.ITL = l.itl.Summary()
	if v.Told {
		for _, r := range []*event.Reading{&v.TTFT, &v.STIL, &v.Prefill, &v.Decode} {
			if r.OK() {
				r.Origin = event.Reported
			}
		}
	}
}

// forgetOld takes away what rests on moments before the clock began. What stages tell of themselves stays.
func (s *state) forgetOld(l *live) {
	v, lost := &l.view, event.Absent(event.NotReported)
	if l.named[event.StagePrompt] == 0 {
		v.Prefill, v.PrefillRate = lost, lost
	}
	if v.First == before {
		v.Decode, v.TPOT, v.DecodeRate = lost, lost, lost
	}
}

// measureWhole is for an answer that came as a whole: nobody saw its tokens come.
func measureWhole(v *Request) {
	unseen := event.Absent(event.NotReported)
	v.TTFT, v.Prefill, v.PrefillRate, v.Decode, v.TPOT, v.DecodeRate = unseen, unseen, unseen, unseen, unseen, unseen
	v.E2EL = seconds(int64(v.Closed - v.Enqueued))
	v.TPS, v.Overall = rate(v.Generated, v.E2EL), rate(v.PromptTokens+v.Generated, v.E2EL)
}

// nanos is a reading in s as whole ns.
func nanos(r event.Reading) int64 { return int64(math.Round(r.V * second)) }

func seconds(ns int64) event.Reading { return event.From(float64(max(ns, 0)) / second) }

// rate is n per s, undefined where no time has passed, and absent where the time is.
func rate(n int, in event.Reading) event.Reading {
	if !in.OK() {
		return in
	}
	if in.V <= 0 || n <= 0 {
		return event.Absent(event.Undefined)
	}
	return event.From(float64(n) / in.V)
}

// measureFirst computes TTFT, its parts, and what prefill took. A cold request's TTFT includes the whole load, whether the
// request waited for it or came after it.
func (s *state) measureFirst(l *live) {
	v := &l.view
	ttft := int64(v.First - v.Enqueued)
	if v.Cold {
		ttft += s.unseen(l)
	}
	v.TTFT = seconds(ttft)
	v.HitTarget = ttft <= int64(v.Targets.TTFT)
	s.split(l, ttft)

	prefill := l.named[event.StagePrompt]
	if prefill == 0 && v.Dispatched != 0 {
		prefill = int64(v.First-v.Dispatched) - l.named[event.StageTokenize] - l.named[event.StageEmbed] - l.named[event.StageFirst]
	}
	v.Prefill = event.Absent(event.NotReported)
	if prefill > 0 {
		v.Prefill = seconds(prefill)
	}
	v.PrefillRate = rate(v.PromptTokens-v.CachedTokens, v.Prefill)
}

// unseen is the part of the model load, in ns, that was over before a cold request came.
func (s *state) unseen(l *live) int64 { return max(s.loadTook-l.named[event.StageLoad], 0) }

// split divides TTFT into its parts. They add up: what the named stages leave is "other".
func (s *state) split(l *live, ttft int64) {
	v := &l.view
	v.Parts, v.Dominant = v.Parts[:0], Part{}
	rest := ttft
	computed := float64(max(v.PromptTokens-v.CachedTokens, 0))
	part := func(stage event.Stage, ns int64) {
		p := Part{Stage: stage, Dur: time.Duration(ns)}
		if ttft > 0 {
			p.Share = float64(ns) / float64(ttft)
		}
		if computed > 0 && stage != event.StageLoad { // which takes as long for any prompt
			p.PerToken = float64(ns) / computed
		}
		v.Parts = append(v.Parts, p)
		if ns > int64(v.Dominant.Dur) {
			v.Dominant = p
		}
	}
	for _, stage := range event.Components() {
		ns := l.named[stage]
		if stage == event.StageLoad && v.Cold {
			ns += s.unseen(l)
		}
		if ns > 0 {
			ns = min(ns, rest) // a stage cannot have taken more than what is left: overlapping stages are cut here
			part(stage, ns)
			rest -= ns
		}
	}
	part(event.StageNone, rest)
}

// measureDecode computes what comes after the first token, without the time that was waited on purpose: E2EL is TTFT + decode time.
func measureDecode(l *live) {
	v := &l.view
	decode := int64(v.Last-v.First) - l.waits
	v.E2EL = seconds(nanos(v.TTFT) + decode)
	v.TPS = rate(v.Generated, v.E2EL)
	v.Overall = rate(v.PromptTokens+v.Generated, v.E2EL)
	if v.Generated < 2 || decode == 0 { // one token, or all of them with one stamp
		undefined := event.Absent(event.Undefined)
		v.Decode, v.TPOT, v.DecodeRate = undefined, undefined, undefined
		return
	}
	v.Decode = seconds(decode)
	v.TPOT = event.From(v.Decode.V / float64(v.Generated-1))
	v.DecodeRate = rate(v.Generated-1, v.Decode)
}
