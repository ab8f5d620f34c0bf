// Package exposition tells other programs what sessions measure: Prometheus and those who read its formats fetch it, and receivers of
// OpenTelemetry's protocol are sent it. Every metric has one definition; its spelling here and there follows from that.
package exposition

import (
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// instrument is one metric.
type instrument struct {
	name  string   // as OpenTelemetry writes it, for example "llmtop.queue.time"
	unit  string   // as UCUM writes it: "s", "By", "1" for a ratio, "{token}" for what is counted
	help  string   // one sentence without a full stop
	attrs []string // keys of its attributes, in the order in which values are given; the engine's comes first
	kind  dto.MetricType

	spelled string   // name for Prometheus
	labels  []string // attrs for Prometheus
}

// instruments are all of them, in the order of their definition; the tests and the documentation hold themselves to it.
var instruments []*instrument

// define adds an instrument.
func define(kind dto.MetricType, name, unit, help string, attrs ...string) *instrument {
	i := &instrument{name: name, unit: unit, help: help, attrs: attrs, kind: kind, spelled: label(name)}
	if s := suffixes[unit]; s != "" && (s != "ratio" || kind == dto.MetricType_GAUGE) {
		i.spelled += "_" + s
	}
	if kind == dto.MetricType_COUNTER {
		i.spelled += "_total"
	}
	for _, a := range attrs {
		i.labels = append(i.labels, label(a))
	}
	instruments = append(instruments, i)
	return i
}

// label is how Prometheus spells the name of a metric or of an attribute.
func label(name string) string { return strings.ReplaceAll(name, ".", "_") }

// suffixes are what Prometheus appends to names for their units; see "OpenTelemetry to Prometheus" in OpenTelemetry's specification.
var suffixes = map[string]string{
	"s": "seconds", "By": "bytes", "1": "ratio", "Hz": "hertz", "W": "watts", "Cel": "celsius",
	"By/s": "bytes_per_second", "{token}/s": "per_second", "{request}/s": "per_second", "{operation}/s": "per_second", "{fault}/s": "per_second",
}

func counter(name, unit, help string, attrs ...string) *instrument {
	return define(dto.MetricType_COUNTER, name, unit, help, attrs...)
}

func gauge(name, unit, help string, attrs ...string) *instrument {
	return define(dto.MetricType_GAUGE, name, unit, help, attrs...)
}

func histogram(name, unit, help string, attrs ...string) *instrument {
	return define(dto.MetricType_HISTOGRAM, name, unit, help, attrs...)
}

// engineAttr is the attribute of all that is told of one engine: its address, or the name of the one that runs inside llmtop.
const engineAttr = "engine"

// The attributes that OpenTelemetry's conventions for generative AI ask for.
const (
	operationAttr = "gen_ai.operation.name"
	providerAttr  = "gen_ai.provider.name"
	modelAttr     = "gen_ai.request.model"
	typeAttr      = "gen_ai.token.type"

	operation = "text_completion" // what all requests are taken for: engines do not tell chats from other texts
)

// What is observed request by request and token by token.
var (
	ttft = histogram("gen_ai.server.time_to_first_token", "s", "Time to first token of warm requests",
		engineAttr, operationAttr, providerAttr, modelAttr)
	coldTTFT = histogram("llmtop.cold_time_to_first_token", "s", "Time to first token of cold requests, which holds the load of the model",
		engineAttr, modelAttr)
	tpot = histogram("gen_ai.server.time_per_output_token", "s", "Mean time between the tokens of each finished request, from its first token on (TPOT)",
		engineAttr, operationAttr, providerAttr, modelAttr)
	e2el = histogram("gen_ai.server.request.duration", "s", "Time from the queue to the last token of finished requests (E2EL)",
		engineAttr, operationAttr, providerAttr, modelAttr)
	itl   = histogram("llmtop.inter_token_latency", "s", "Gaps between consecutive tokens of a request (ITL)", engineAttr, modelAttr)
	queue = histogram("llmtop.queue.time", "s", "Time that requests waited for the scheduler to begin with them (STIL)", engineAttr, modelAttr)
	usage = histogram("gen_ai.client.token.usage", "{token}", "Tokens of ended requests: their prompts are the input, what was generated the output",
		engineAttr, operationAttr, providerAttr, modelAttr, typeAttr)
	component = counter("llmtop.time_to_first_token.component", "s", "Time to first token of ended requests by where it went: the stages add up to it",
		engineAttr, modelAttr, "start", "stage")
	probe  = histogram("llmtop.probe.time", "s", "Times of llmtop's own requests to a server, which are in none of its other metrics", engineAttr, "time")
	probes = counter("llmtop.probes", "{request}", "Requests of llmtop's own that have ended", engineAttr, "outcome")
)

// Bounds of the histograms' classic buckets: those that OpenTelemetry's conventions advise, continued to both sides.
var (
	firstBounds = []float64{.0005, .001, .0025, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 25, 50, 100, 250}
	tokenBounds = []float64{
		.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5,
	}
	wholeBounds = []float64{.001, .0025, .005, .01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68}
	probeBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100}
	queueBounds = []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250}
	usageBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)
