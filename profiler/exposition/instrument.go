// Package exposition exports metrics: Prometheus and scrapers of its formats fetch them, and OTLP receivers get them
// pushed. Each metric is defined once; its names in Prometheus and OpenTelemetry follow from the definition.
package exposition

import (
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/llmtop/llmtop/profiler/store"
)

// instrument is one metric.
type instrument struct {
	name  string   // OpenTelemetry name, for example "llmtop.queue.time"
	unit  string   // UCUM unit: "s", "By", "1" for a ratio, "{token}" for counted things
	help  string   // one sentence without a period at the end
	attrs []string // attribute keys, in the order in which values are passed; the engine comes first
	kind  dto.MetricType

	promName string   // Prometheus name
	labels   []string // attrs as Prometheus labels
}

// instruments holds all instruments in the order of their definition. Tests and the documentation are checked against
// it.
var instruments []*instrument

// define creates an instrument and appends it to instruments.
func define(kind dto.MetricType, name, unit, help string, attrs ...string) *instrument {
	i := &instrument{name: name, unit: unit, help: help, attrs: attrs, kind: kind, promName: promLabel(name)}
	if s := suffix(unit); s != "" && (s != "ratio" || kind == dto.MetricType_GAUGE) {
		i.promName += "_" + s
	}
	if kind == dto.MetricType_COUNTER {
		i.promName += "_total"
	}
	for _, a := range attrs {
		i.labels = append(i.labels, promLabel(a))
	}
	instruments = append(instruments, i)
	return i
}

// sentence returns a definition of the catalogue as the help of a metric.
func sentence(help string) string { return strings.ToUpper(help[:1]) + help[1:] }

// promLabel returns the Prometheus form of a metric name or attribute key.
func promLabel(name string) string { return strings.ReplaceAll(name, ".", "_") }

// suffixes are the unit suffixes of Prometheus names; see "OpenTelemetry to Prometheus" in OpenTelemetry's
// specification.
var suffixes = map[string]string{
	"s": "seconds", "By": "bytes", "1": "ratio", "Hz": "hertz", "W": "watts", "J": "joules", "Cel": "celsius", "By/s": "bytes_per_second",
}

// suffix returns the suffix of a unit; counted things per second all have the same.
func suffix(unit string) string {
	if strings.HasPrefix(unit, "{") && strings.HasSuffix(unit, "/s") {
		return "per_second"
	}
	return suffixes[unit]
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

// engineAttr is the attribute of all metrics of one engine: its address, or the name of the engine that runs inside
// llmtop.
const engineAttr = "engine"

// Attributes that OpenTelemetry's semantic conventions for generative AI require.
const (
	operationAttr = "gen_ai.operation.name"
	providerAttr  = "gen_ai.provider.name"
	modelAttr     = "gen_ai.request.model"
	typeAttr      = "gen_ai.token.type"

	unknown = "unknown" // value of an attribute that must be present
)

// operationOf returns the value of operationAttr for a request.
func operationOf(chat bool) string {
	if chat {
		return "chat"
	}
	return "text_completion"
}

// latencyMetrics are the histograms of the latencies.
var latencyMetrics = func() (out [store.NumLatencies]*instrument) {
	for id := range store.Latencies {
		row, attrs := &store.Latencies[id], []string{engineAttr, modelAttr}
		if row.GenAI {
			attrs = []string{engineAttr, operationAttr, providerAttr, modelAttr}
		}
		out[id] = histogram(row.Metric, "s", sentence(row.Help), attrs...)
	}
	return out
}()

// Other metrics that are counted per request.
var (
	usage = histogram("gen_ai.client.token.usage", "{token}", "Tokens of ended requests: input is the prompt, output the generated tokens",
		engineAttr, operationAttr, providerAttr, modelAttr, typeAttr)
	clientWhole = clientTime("duration", "Time of a finished request as its client sees it, measured by the proxy in front of the engine")
	clientFirst = clientTime("time_to_first_chunk", "Time to the first chunk of a streamed answer, warm or cold, as the client sees it")
	clientChunk = clientTime("time_per_output_chunk", "Time between two chunks of a streamed answer, as the client sees it")
	component   = counter("llmtop.time_to_first_token.component", "s", "Time to first token of ended requests by stage; the stages add up to it",
		engineAttr, modelAttr, "start", "stage")
)

// clientTime returns a histogram of what the clients of an engine see.
func clientTime(name, help string) *instrument {
	return histogram("gen_ai.client.operation."+name, "s", help, engineAttr, operationAttr, providerAttr, modelAttr)
}

// Bucket bounds of the classic histograms that are not latencies.
var (
	usageBounds = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)
