package exposition

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// observed are the metrics that are counted as things happen, those of all engines together.
type observed struct {
	ttft, cold, tpot, itl, e2el, queue, usage *prometheus.HistogramVec
	probe                                     *prometheus.HistogramVec
	component, probes                         *prometheus.CounterVec
}

func newObserved(into *prometheus.Registry) *observed {
	o := &observed{
		ttft: vector(ttft, firstBounds), cold: vector(coldTTFT, firstBounds), tpot: vector(tpot, tokenBounds), itl: vector(itl, tokenBounds),
		e2el: vector(e2el, wholeBounds), queue: vector(queue, queueBounds), usage: vector(usage, usageBounds), probe: vector(probe, probeBounds),
		component: counters(component), probes: counters(probes),
	}
	into.MustRegister(o.ttft, o.cold, o.tpot, o.itl, o.e2el, o.queue, o.usage, o.probe, o.component, o.probes)
	return o
}

func counters(i *instrument) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: i.spelled, Help: i.help}, i.labels)
}

// maxNative bounds the buckets of a native histogram; beyond it the buckets become wider.
const maxNative = 160

// vector makes a histogram with classic buckets and, for those who fetch protobuf, with native ones at most 10 % wide.
func vector(i *instrument, bounds []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: i.spelled, Help: i.help, Buckets: bounds,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: maxNative,
	}, i.labels)
}

// subject is whom an observation is about.
type subject struct{ engine, provider, model string }

func (s subject) general() []string { return []string{s.engine, operation, s.provider, s.model} }

// first counts what is known with the first token of a request. A probe is no part of the engine's statistics, and is counted when it has ended.
func (o *observed) first(s subject, r *store.Request) {
	switch {
	case r.Probe:
		return
	case r.TTFT.OK() && r.Cold:
		o.cold.WithLabelValues(s.engine, s.model).Observe(r.TTFT.V)
	case r.TTFT.OK():
		o.ttft.WithLabelValues(s.general()...).Observe(r.TTFT.V)
	}
	if r.STIL.OK() {
		o.queue.WithLabelValues(s.engine, s.model).Observe(r.STIL.V)
	}
}

// last counts what is known with the end of a request.
func (o *observed) last(s subject, r *store.Request) {
	switch {
	case r.Probe:
		o.probed(s, r)
		return
	case r.Polled: // nobody saw all of it
		return
	}
	start := "warm"
	if r.Cold {
		start = "cold"
	}
	for _, part := range r.Parts {
		stage := "other"
		if part.Stage != event.StageNone {
			stage = part.Stage.String()
		}
		o.component.WithLabelValues(s.engine, s.model, start, stage).Add(max(part.Dur.Seconds(), 0))
	}
	if r.PromptTokens > 0 {
		o.usage.WithLabelValues(append(s.general(), "input")...).Observe(float64(r.PromptTokens))
	}
	if r.Generated > 0 {
		o.usage.WithLabelValues(append(s.general(), "output")...).Observe(float64(r.Generated))
	}
	if r.State != event.StateFinished {
		return
	}
	if r.E2EL.OK() {
		o.e2el.WithLabelValues(s.general()...).Observe(r.E2EL.V)
	}
	if r.TPOT.OK() {
		o.tpot.WithLabelValues(s.general()...).Observe(r.TPOT.V)
	}
}

// probed counts a probe.
func (o *observed) probed(s subject, r *store.Request) {
	o.probes.WithLabelValues(s.engine, r.State.String()).Inc()
	if r.State != event.StateFinished {
		return
	}
	for name, v := range map[string]event.Reading{event.TimesTTFT: r.TTFT, event.TimesTPOT: r.TPOT, event.TimesE2EL: r.E2EL} {
		if v.OK() {
			o.probe.WithLabelValues(s.engine, name).Observe(v.V)
		}
	}
}
