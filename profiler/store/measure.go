package store

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// second is one second in ns.
const second = float64(time.Second)

// settings are inputs of a request's metrics other than its own events.
type settings struct {
	caps event.Caps
	load modelLoad // the last one
}

// modelLoad is when a model was loaded; zero: not reported.
type modelLoad struct{ from, to event.Time }

// newModelLoad returns the load that ended with an event; nil if its length is not reported.
func newModelLoad(e *event.Event) *modelLoad {
	if e.Dur <= 0 {
		return nil
	}
	return &modelLoad{e.At - event.Time(e.Dur), e.At}
}

// loadOf returns when a model was loaded by the stages of its load, of which there is one.
func loadOf(stages []StageSpan) modelLoad {
	load := modelLoad{stages[0].Start, stages[0].End}
	for i := range stages {
		load = modelLoad{min(load.from, stages[i].Start), max(load.to, stages[i].End)}
	}
	return load
}

// of returns the settings of a request: its load is the last one before its first token.
func (with settings) of(l *liveRequest) settings {
	if l.view.First != 0 {
		with.load = l.load
	}
	return with
}

// measure computes a request's metrics from its stamps.
func (l *liveRequest) measure(with settings) {
	v := &l.view
	with = with.of(l)
	if v.Polled {
		measurePolled(l)
		return
	}
	absent := event.Absent(event.NotYet)
	if v.State.Final() {
		absent = event.Absent(event.Undefined)
	}
	v.AnyQueue = !with.caps.Has(event.CapQueue)
	v.STIL, v.Paced = l.queueTime(&with, absent), event.DerivedValue(float64(l.pacedTotal)/second)
	v.TTFT, v.Prefill, v.PrefillRate = absent, absent, absent
	v.Decode, v.TPOT, v.DecodeRate = absent, absent, absent
	v.E2EL, v.TPS, v.Overall = absent, absent, absent
	switch {
	case v.First != 0:
		l.measureFirst(&with)
		measureDecode(l)
	case v.State.Final() && v.Generated > 0:
		measureUnstreamed(v)
	}
	if !v.State.Final() {
		v.E2EL = absent
	}
	if l.missedStart {
		missing := event.Absent(event.NotReported)
		if l.missedFirst {
			v.Decode = missing
		}
		v.STIL, v.TTFT, v.E2EL, v.TPS, v.Overall = missing, missing, missing, missing, missing
		v.Parts, v.Dominant, v.HitTarget = nil, Part{}, false
		if l.predatesClock {
			l.clearPreClockReadings()
		}
	}
	if missing := event.Absent(event.NotReported); v.AnyEnd || l.holed && !v.State.Final() {
		v.E2EL, v.TPS, v.Overall, v.Decode, v.TPOT, v.DecodeRate = missing, missing, missing, missing, missing, missing
	} else if v.AtLeast {
		v.TPS, v.Overall, v.TPOT, v.DecodeRate = missing, missing, missing, missing
	}
	l.measureThinking(absent)
	v.ITL = l.itl.Summary()
	if v.Retrospective {
		for _, r := range []*event.Reading{&v.TTFT, &v.STIL, &v.Prefill, &v.Decode} {
			if r.OK() {
				r.Origin = event.Reported
			}
		}
	}
}

// queueTime returns how long a request waited for a slot: the time that the engine reports, or else the time until it
// was dispatched without other stages, or else that in which others held the slots; absent while it waits.
func (l *liveRequest) queueTime(with *settings, absent event.Reading) event.Reading {
	switch v := &l.view; {
	case l.stageTime[event.StageQueue] > 0:
		return seconds(l.stageTime[event.StageQueue])
	case v.Dispatched != 0:
		return seconds(l.unstamped(with, v.Enqueued, v.Dispatched))
	case v.idle:
		return seconds(0)
	case v.Retrospective || !with.caps.Has(event.CapQueue):
		if ns := v.waitedForSlot(with.caps); ns > 0 {
			return seconds(ns)
		}
		return event.Absent(event.NotReported)
	}
	return absent
}

// prefillTime returns how long the prompt was processed, in ns: the time that the engine reports, or else the time from
// its dispatch to its first token without other stages; 0 if both are unknown.
func (l *liveRequest) prefillTime(with *settings) int64 {
	v := &l.view
	stamped := func(p StageSpan) bool { return p.Stage == event.StagePrompt }
	began := v.Dispatched
	if began == 0 && v.idle {
		began = v.Enqueued
	}
	if ns := l.stageTime[event.StagePrompt]; ns > 0 || began == 0 || v.Omitted.Spans > 0 || slices.ContainsFunc(v.Spans, stamped) {
		return ns
	}
	return l.unstamped(with, began, v.First)
}

// loadTime returns the part of the model load in the time until the first token, in ns: as it is stamped for the request,
// or else what of the load lies in it.
func (l *liveRequest) loadTime(with *settings) int64 {
	if ns := l.stageTime[event.StageLoad]; ns > 0 || l.missedStart {
		return ns
	}
	return max(int64(min(with.load.to, l.view.First)-max(with.load.from, l.view.Enqueued)), 0)
}

// unstamped returns how much of the time between two moments neither a stage of the request nor the model load covers, in
// ns.
func (l *liveRequest) unstamped(with *settings, from, to event.Time) (ns int64) {
	load := StageSpan{Start: with.load.from, End: with.load.to}
	for at := from; at < to; {
		next, end := to, at
		for i := range len(l.view.Spans) + 1 {
			p := &load
			if i > 0 {
				p = &l.view.Spans[i-1]
			}
			switch {
			case p.Start > at:
				next = min(next, p.Start)
			case p.End > end:
				end = p.End
			}
		}
		if end == at {
			ns, end = ns+int64(next-at), next
		}
		at = end
	}
	return ns
}

// clearPreClockReadings marks as not reported what needs times before the clock's epoch. Durations of stages stay.
func (l *liveRequest) clearPreClockReadings() {
	v, missing := &l.view, event.Absent(event.NotReported)
	if l.stageTime[event.StagePrompt] == 0 {
		v.Prefill, v.PrefillRate = missing, missing
	}
	if v.First == beforeClock {
		v.Decode, v.TPOT, v.DecodeRate = missing, missing, missing
	}
}

// measureUnstreamed measures a request whose response arrived in one piece: no token has a stamp.
func measureUnstreamed(v *Request) {
	missing := event.Absent(event.NotReported)
	v.TTFT, v.Prefill, v.PrefillRate, v.Decode, v.TPOT, v.DecodeRate = missing, missing, missing, missing, missing, missing
	v.E2EL = seconds(int64(v.Closed - v.Enqueued))
	v.TPS, v.Overall = rate(v.Generated, v.E2EL), overallRate(v)
}

// nanos returns a reading in s as whole ns.
func nanos(r event.Reading) int64 { return int64(math.Round(r.V * second)) }

func seconds(ns int64) event.Reading { return event.DerivedValue(float64(max(ns, 0)) / second) }

// overallRate returns the prompt and generated tokens per second of E2EL; not reported if the prompt tokens are unknown.
func overallRate(v *Request) event.Reading {
	if v.PromptTokens == 0 {
		return event.Absent(event.NotReported)
	}
	return rate(v.PromptTokens+v.Generated, v.E2EL)
}

// rate returns n per second: undefined if no time has passed, absent if the time is absent.
func rate(n int, elapsed event.Reading) event.Reading {
	if !elapsed.OK() {
		return elapsed
	}
	if elapsed.V <= 0 || n <= 0 {
		return event.Absent(event.Undefined)
	}
	return event.DerivedValue(float64(n) / elapsed.V)
}

// measureFirst computes TTFT, its parts, and the prefill time. A cold request's TTFT includes the whole model load,
// whether the request arrived during the load or after it. A token that was seen to be sent came when it was sent.
func (l *liveRequest) measureFirst(with *settings) {
	v := &l.view
	ttft, before := event.Add(int64(v.First-v.Enqueued), l.stageTime[event.StageSend]), int64(0)
	if v.Cold && !l.foundCold {
		before = max(int64(with.load.to-with.load.from)-l.loadTime(with), 0) // part of the load that was over when the request arrived
	}
	ttft += before
	v.TTFT = seconds(ttft)
	v.HitTarget = ttft <= int64(v.Targets.TTFT)
	l.splitTTFT(with, ttft, before)

	v.Prefill = event.Absent(event.NotReported)
	if prefill := l.prefillTime(with); prefill > 0 {
		v.Prefill = seconds(prefill)
	}
	v.PrefillRate = event.Absent(event.NotReported)
	switch {
	case v.Computed > 0:
		v.PrefillRate = rate(v.Computed, v.Prefill)
	case v.idle && v.AnyCached && v.State.Final():
		v.PrefillRate = rate(v.PromptTokens, v.Prefill)
	}
}

// splitTTFT divides TTFT into parts that add up to it. The last part, "other", is what the named stages leave. Queue and
// prompt that are not stamped are what the dispatch leaves of the time before and after it. The model
// load is the part measured with the request, and loadBefore ns before it. The queue time is that of its part.
func (l *liveRequest) splitTTFT(with *settings, ttft, loadBefore int64) {
	v := &l.view
	v.Dominant = Part{}
	var buf [event.NumStages]Part
	parts := buf[:0]
	rest := ttft
	part := func(stage event.Stage, ns int64) {
		p := Part{Stage: stage, Dur: time.Duration(ns), Share: metric.Share(float64(ns), float64(ttft))}
		switch stage {
		case event.StageTokenize, event.StageEmbed, event.StagePrompt, event.StageHostToDevice:
			if v.Computed > 0 {
				p.PerToken = float64(ns) / float64(v.Computed)
			}
		}
		parts = append(parts, p)
		if ns > int64(v.Dominant.Dur) {
			v.Dominant = p
		}
	}
	for _, stage := range event.Components() {
		ns := l.stageTime[stage]
		switch {
		case stage == event.StageLoad:
			ns = l.loadTime(with) + loadBefore
		case stage == event.StageQueue && v.STIL.OK():
			ns = nanos(v.STIL)
		case stage == event.StagePrompt:
			ns = max(l.prefillTime(with)-copiesInPrompt(v), 0)
		}
		if ns > 0 {
			ns = min(ns, rest) // overlapping stages: clamp to what is left
			part(stage, ns)
			rest -= ns
			if stage == event.StageQueue {
				v.STIL = seconds(ns)
			}
		}
	}
	part(event.StageNone, rest)
	if !slices.Equal(parts, v.Parts) { // snapshots share the old slice
		v.Parts = slices.Clone(parts)
	}
}

// copiesInPrompt returns the time of copies to and from the device that lie within stamped prompt processing, in ns.
func copiesInPrompt(r *Request) (ns int64) {
	for i := range r.Spans {
		for k := range r.Spans {
			c, p := &r.Spans[i], &r.Spans[k]
			if (c.Stage == event.StageHostToDevice || c.Stage == event.StageDeviceToHost) && p.Stage == event.StagePrompt {
				ns += max(int64(min(c.End, p.End)-max(c.Start, p.Start)), 0)
			}
		}
	}
	return ns
}

// measureDecode computes what follows the first token, without pacing: E2EL is TTFT + decode time.
func measureDecode(l *liveRequest) {
	v := &l.view
	decode := int64(v.Last-v.First) - l.pacedTotal
	v.E2EL = seconds(nanos(v.TTFT) + decode)
	v.TPS = rate(v.Generated, v.E2EL)
	v.Overall = overallRate(v)
	if v.Generated < 2 || decode == 0 { // one token, or all with the same stamp
		undefined := event.Absent(event.Undefined)
		v.Decode, v.TPOT, v.DecodeRate = undefined, undefined, undefined
		return
	}
	v.Decode = seconds(decode)
	later, times := v.Generated-int(l.atFirst), v.Decode.V
	if v.Choices > 1 {
		span, first := l.choices.Span()
		later, times = v.Generated-first, float64(span)/second
	}
	if l.later != 0 {
		later = int(l.later)
	}
	absent := event.Absent(event.Undefined)
	switch {
	case later < 0: // Generated counts tokens that were not streamed
		absent = event.Absent(event.NotReported)
		fallthrough
	case later == 0, times == 0:
		v.TPOT, v.DecodeRate = absent, absent
		return
	}
	v.TPOT = event.DerivedValue(times / float64(later))
	v.DecodeRate = rate(later, v.Decode)
}
