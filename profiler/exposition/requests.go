package exposition

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// requestMetrics are the metrics that are counted per event and per request, for all engines together.
type requestMetrics struct {
	latencies         [store.NumLatencies]*prometheus.HistogramVec
	usage             *prometheus.HistogramVec
	whole             *prometheus.HistogramVec // as clients see requests: whole, until the first chunk, between two
	firstChunk, chunk *prometheus.HistogramVec
	component         *prometheus.CounterVec
}

// newRequestMetrics creates the metrics and registers them.
func newRequestMetrics(into *prometheus.Registry) *requestMetrics {
	o := &requestMetrics{
		usage: vector(usage, usageBounds), component: counters(component),
		whole: vector(clientWhole, store.WholeBounds), firstChunk: vector(clientFirst, store.FirstBounds), chunk: vector(clientChunk, store.TokenBounds),
	}
	for id, i := range latencyMetrics {
		o.latencies[id] = vector(i, store.Latencies[id].Bounds)
		into.MustRegister(o.latencies[id])
	}
	into.MustRegister(o.usage, o.whole, o.firstChunk, o.chunk, o.component)
	return o
}

// latency returns the histogram of a latency with the values of its labels.
func (o *requestMetrics) latency(id store.LatencyID, s labelSet) prometheus.Observer {
	if id.Row().GenAI {
		return o.latencies[id].WithLabelValues(s.genAI()...)
	}
	return o.latencies[id].WithLabelValues(s.engine, s.model)
}

// observe counts the latencies of a request that are due at a moment.
func (o *requestMetrics) observe(s labelSet, r *store.Request, moment store.Moment) {
	for id := range store.NumLatencies {
		if row := id.Row(); row.Moment == moment && row.Of != nil {
			if v := row.Of(r); v.OK() {
				o.latency(id, s).Observe(v.V)
			}
		}
	}
}

func counters(i *instrument) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: i.promName, Help: i.help}, i.labels)
}

// maxNative is how many buckets a native histogram has at most; beyond it the buckets become wider.
const maxNative = 160

// vector creates a histogram with classic buckets and, for scrapers of protobuf, native buckets at most 10 % wide.
func vector(i *instrument, bounds []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: i.promName, Help: i.help, Buckets: bounds,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: maxNative,
	}, i.labels)
}

// labelSet are the label values of an observation. proxied is no label: a proxy observes the engine as its clients do.
type labelSet struct {
	engine, operation, provider, model string
	proxied                            bool
}

// genAI returns the label values that the gen_ai metrics share.
func (s labelSet) genAI() []string { return []string{s.engine, s.operation, s.provider, s.model} }

// firstToken counts what is available at the first token of a request. Requests made to measure are not part of the engine's
// statistics.
func (o *requestMetrics) firstToken(s labelSet, r *store.Request) {
	if r.Probe {
		return
	}
	o.observe(s, r, store.AtFirstToken)
	if s.proxied && r.TTFT.OK() {
		o.firstChunk.WithLabelValues(s.genAI()...).Observe(r.TTFT.V)
	}
}

// requestEnd counts what is available when a request has ended.
func (o *requestMetrics) requestEnd(s labelSet, r *store.Request) {
	if r.Probe || r.Polled { // polled from a slot: not observed in full
		return
	}
	start := "warm"
	if r.Cold {
		start = "cold"
	}
	for _, part := range r.Parts {
		o.component.WithLabelValues(s.engine, s.model, start, part.Stage.Component()).Add(max(part.Dur.Seconds(), 0))
	}
	if r.PromptTokens > 0 {
		o.usage.WithLabelValues(append(s.genAI(), "input")...).Observe(float64(r.PromptTokens))
	}
	if r.Generated > 0 {
		o.usage.WithLabelValues(append(s.genAI(), "output")...).Observe(float64(r.Generated))
	}
	if r.First == 0 {
		o.observe(s, r, store.AtFirstToken)
	}
	if r.State == event.StateFinished {
		o.observe(s, r, store.AtEnd)
		if s.proxied && r.E2EL.OK() {
			o.whole.WithLabelValues(s.genAI()...).Observe(r.E2EL.V)
		}
	}
}
