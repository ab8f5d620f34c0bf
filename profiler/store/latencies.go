package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// LatencyID identifies a row of Latencies.
type LatencyID uint8

// The latencies, in display order.
const (
	TTFT LatencyID = iota
	ColdTTFT
	Answer
	Thinking
	STIL
	ITL
	MaxITL
	TPOT
	AnswerTPOT
	E2EL
	NumLatencies
)

// Latency holds the latency distributions over each window, and their trend.
type Latency struct {
	Of         *LatencySummaries
	Session    struct{ TTFT, ITL, TPOT *metric.Histogram } // what Snapshot.ChangesSince compares
	Series     []LatencyPoint                              // one per second, oldest first, at most SeriesLen
	Stalls     []Stall                                     // newest last
	StallCount [metric.NumWindows]uint64
	Targets    Targets
	Goodput    event.Reading // requests/s that met every target, over the last minute
}

// LatencySummaries describe the distribution of each latency over each window. They are immutable.
type LatencySummaries [NumLatencies][metric.NumWindows]metric.Summary

// noLatencies are those of an engine without requests, as hundreds of polled servers are.
var noLatencies LatencySummaries

// Moment is when a latency of a request is recorded.
type Moment uint8

// The moments.
const (
	AtFirstToken Moment = iota // of requests with any outcome; without a first token, at the end
	AtEnd                      // of finished requests
	AtToken                    // of each token
)

// LatencyRow is all that is known of a latency: the row of the catalogue that the store, reports, exports, alerts,
// comparisons, the screen, its help and docs/metrics.md share. All latencies are in s.
type LatencyRow struct {
	Name   string    // "TTFT"
	Title  string    // on the screen
	JSON   string    // member of reports
	Metric string    // OpenTelemetry name of the histogram
	Alert  string    // prefix of the measures of alert rules; "": none
	Server string    // name of the event.Histogram of servers that count it; "": none does
	Reason bool      // of requests that reason only: not shown without one
	GenAI  bool      // named by OpenTelemetry's conventions for generative AI, which require further attributes
	Bounds []float64 // of a classic histogram, in s

	Help string // definition for exports, alerts and the screen's help; no period at the end

	Practical float64 // s: smaller differences do not matter to comparisons
	Gate      bool    // decides the outcome of comparisons by default
	FromQueue bool    // counts from the queue: the cold request, which contains the model load, is not compared with others

	Moment Moment
	Of     func(*Request) event.Reading // nil for latencies of tokens
}

// The bucket bounds of classic histograms of times to the first token, per token, of whole requests, and in queues, in s:
// those that OpenTelemetry's conventions recommend, extended on both sides.
var (
	FirstBounds = []float64{.0005, .001, .0025, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 25, 50, 100, 250}
	TokenBounds = []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5}
	WholeBounds = []float64{.001, .0025, .005, .01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68}
	QueueBounds = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250}
)

// Latencies is the catalogue of latencies.
var Latencies = [NumLatencies]LatencyRow{
	TTFT: {
		Name: "TTFT", Title: "TTFT warm", JSON: "ttft_s", Metric: "gen_ai.server.time_to_first_token", Alert: "ttft", Server: event.HistogramTTFT, GenAI: true, Bounds: FirstBounds,
		Help:      "time to first token: first token - enqueued, of warm requests",
		Practical: 200e-6, Gate: true,
		Of: func(r *Request) event.Reading { return onlyIf(!r.Cold, r.TTFT) },
	},
	ColdTTFT: {
		Name: "TTFT cold", Title: "TTFT cold", JSON: "cold_ttft_s", Metric: "llmtop.cold_time_to_first_token", Bounds: FirstBounds,
		Help:      "time to first token of the cold request, including the model load if it is reported",
		Practical: 5e-3,
		Of:        func(r *Request) event.Reading { return onlyIf(r.Cold, r.TTFT) },
	},
	Answer: {
		Name: "first answer token", Title: "1st answer", JSON: "answer_s", Metric: "llmtop.time_to_first_answer_token", Reason: true, Alert: "answer", Bounds: FirstBounds,
		Help:      "time to the first token of the answer of requests that reason: first token that is no reasoning - enqueued",
		Practical: 200e-6, Moment: AtEnd,
		Of: func(r *Request) event.Reading { return onlyIf(!r.Cold, r.Answer) },
	},
	Thinking: {
		Name: "thinking time", Title: "thinking", JSON: "thinking_s", Metric: "llmtop.thinking.time", Reason: true, Alert: "thinking", Bounds: WholeBounds,
		Help:      "from the first token of reasoning to the next token of the answer; pacing is excluded",
		Practical: 1e-3, Moment: AtEnd,
		Of: func(r *Request) event.Reading { return r.Thinking },
	},
	STIL: {
		Name: "queue time", Title: "queue time", JSON: "stil_s", Metric: "llmtop.queue.time", Alert: "queue", Server: event.HistogramQueue, Bounds: QueueBounds,
		Help:      "queue time, waiting for a slot after the model was ready: dispatched - enqueued, without other stages, model load and pacing of others",
		Practical: 200e-6, FromQueue: true,
		Of: func(r *Request) event.Reading { return onlyIf(!r.QueueInferred(), r.STIL) },
	},
	ITL: {
		Name: "ITL", Title: "ITL", JSON: "itl_s", Metric: "llmtop.inter_token_latency", Alert: "itl", Server: event.HistogramITL, Bounds: TokenBounds,
		Help:      "inter-token latency: gap between two consecutive tokens; pacing (deliberate waiting) is excluded",
		Practical: 10e-6, Moment: AtToken,
	},
	MaxITL: {
		Name: "max ITL", Title: "max ITL", JSON: "max_itl_s", Metric: "llmtop.max_inter_token_latency", Alert: "max_itl", Bounds: TokenBounds,
		Help:      "longest gap between two tokens of a request; pacing is excluded",
		Practical: 100e-6, Moment: AtEnd,
		Of: longestGap,
	},
	TPOT: {
		Name: "TPOT", Title: "TPOT", JSON: "tpot_s", Metric: "gen_ai.server.time_per_output_token", Alert: "tpot", Server: event.HistogramTPOT, GenAI: true, Bounds: TokenBounds,
		Help:      "time per output token: (E2EL - TTFT) / (streamed tokens - those that came with the first), the mean ITL",
		Practical: 1e-6, Gate: true, Moment: AtEnd,
		Of: func(r *Request) event.Reading { return r.TPOT },
	},
	AnswerTPOT: {
		Name: "TPOT of the answer", Title: "TPOT ans.", JSON: "answer_tpot_s", Metric: "llmtop.answer.time_per_output_token", Reason: true, Alert: "answer_tpot", Bounds: TokenBounds,
		Help:      "time per output token of the answer without reasoning: time from its first token to its last / its tokens after those that came with the first",
		Practical: 1e-6, Moment: AtEnd,
		Of: func(r *Request) event.Reading { return r.AnswerTPOT },
	},
	E2EL: {
		Name: "E2EL", Title: "E2EL", JSON: "e2el_s", Metric: "gen_ai.server.request.duration", Alert: "e2el", Server: event.HistogramE2EL, GenAI: true, Bounds: WholeBounds,
		Help:      "end-to-end latency: finished - enqueued = TTFT + decode time",
		Practical: 500e-6, Gate: true, FromQueue: true, Moment: AtEnd,
		Of: func(r *Request) event.Reading { return r.E2EL },
	},
}

// longestGap returns the longest gap between two tokens of a request.
func longestGap(r *Request) event.Reading {
	switch {
	case r.MissedStart:
		return event.Absent(event.NotReported)
	case r.ITL.Count == 0:
		return event.Absent(event.Undefined)
	}
	return event.DerivedValue(float64(r.ITL.Max) / second)
}

// onlyIf returns a reading, or none if it does not apply.
func onlyIf(applies bool, r event.Reading) event.Reading {
	if !applies {
		return event.Absent(event.Undefined)
	}
	return r
}

// Row returns the row of a latency.
func (id LatencyID) Row() *LatencyRow { return &Latencies[id] }
