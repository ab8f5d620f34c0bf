package exposition

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxPoints is how many data points a message has at most. A point takes about 400 bytes, so a message stays well below
// the 20 MB that collectors accept.
const maxPoints = 8192

// cumulative is AGGREGATION_TEMPORALITY_CUMULATIVE; OTLP's JSON writes enumerations as numbers.
const cumulative = 2

// encoder encodes metric families as OTLP's ExportMetricsServiceRequest in JSON: 64-bit integers are strings, names are
// in lowerCamelCase.
// Specification: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
type encoder struct {
	resource   []byte // start of every message, up to the first metric
	now        []byte // timestamp of all points, Unix ns
	byPromName map[string]*instrument
	attrs      map[string]string // attribute keys by Prometheus label
	strings    map[string][]byte // quoted strings of one encode call: labels repeat

	out      []byte
	metrics  int // in out
	points   int // in out
	messages [][]byte
}

func newEncoder(version, instance string) *encoder {
	e := &encoder{byPromName: make(map[string]*instrument), attrs: make(map[string]string), strings: make(map[string][]byte)}
	for _, i := range instruments {
		e.byPromName[i.promName] = i
		for k, label := range i.labels {
			e.attrs[label] = i.attrs[k]
		}
	}
	e.resource = append(e.resource, `{"resourceMetrics":[{"resource":{"attributes":[`...)
	for k, pair := range [][2]string{{"service.name", "llmtop"}, {"service.version", version}, {"service.instance.id", instance}} {
		if k > 0 {
			e.resource = append(e.resource, ',')
		}
		e.resource = e.attribute(e.resource, pair[0], pair[1])
	}
	e.resource = append(e.resource, `]},"scopeMetrics":[{"scope":{"name":"github.com/llmtop/llmtop","version":`...)
	e.resource = append(append(e.resource, e.quote(version)...), `},"metrics":[`...)
	return e
}

// encode encodes families as messages of at most maxPoints points. It skips families that are not instruments of this
// package.
func (e *encoder) encode(families []*dto.MetricFamily, now time.Time) [][]byte {
	e.messages, e.out, e.metrics, e.points = nil, nil, 0, 0
	clear(e.strings)
	e.now = strconv.AppendInt(nil, now.UnixNano(), 10)
	for _, f := range families {
		i := e.byPromName[f.GetName()]
		if i == nil {
			continue
		}
		for rest := f.Metric; len(rest) > 0; {
			n := min(len(rest), maxPoints-e.points)
			e.metric(i, rest[:n])
			rest = rest[n:]
			if e.points == maxPoints {
				e.flush()
			}
		}
	}
	e.flush()
	return e.messages
}

// flush completes the current message.
func (e *encoder) flush() {
	if e.metrics > 0 {
		e.messages = append(e.messages, append(e.out, `],"schemaUrl":"`+schemaURL+`"}]}]}`...))
	}
	e.out, e.metrics, e.points = make([]byte, 0, len(e.out)+len(e.out)/16), 0, 0 // the next message has a similar size
}

// metric appends an instrument with some of its points.
func (e *encoder) metric(i *instrument, points []*dto.Metric) {
	if e.metrics == 0 {
		e.out = append(e.out, e.resource...)
	} else {
		e.out = append(e.out, ',')
	}
	e.metrics++
	e.points += len(points)
	e.out = append(append(e.out, `{"name":`...), e.quote(i.name)...)
	e.out = append(append(e.out, `,"description":`...), e.quote(i.help)...)
	e.out = append(append(e.out, `,"unit":`...), e.quote(i.unit)...)
	switch i.kind {
	case dto.MetricType_COUNTER:
		e.out = append(e.out, `,"sum":{"aggregationTemporality":`...)
		e.out = append(strconv.AppendInt(e.out, cumulative, 10), `,"isMonotonic":true`...)
	case dto.MetricType_HISTOGRAM:
		e.out = append(e.out, `,"histogram":{"aggregationTemporality":`...)
		e.out = strconv.AppendInt(e.out, cumulative, 10)
	default:
		e.out = append(e.out, `,"gauge":{`...)
	}
	if i.kind != dto.MetricType_GAUGE {
		e.out = append(e.out, ',')
	}
	e.out = append(e.out, `"dataPoints":[`...)
	for k, m := range points {
		if k > 0 {
			e.out = append(e.out, ',')
		}
		e.point(i, m)
	}
	e.out = append(e.out, `]}}`...)
}

// point appends one data point.
func (e *encoder) point(i *instrument, m *dto.Metric) {
	e.out = append(e.out, `{"attributes":[`...)
	some := false
	for _, l := range m.Label {
		if l.GetValue() == "" { // Prometheus treats an empty label as absent
			continue
		}
		if some {
			e.out = append(e.out, ',')
		}
		e.out, some = e.attribute(e.out, e.attrs[l.GetName()], l.GetValue()), true
	}
	e.out = append(append(append(e.out, `],"timeUnixNano":"`...), e.now...), '"')
	switch {
	case m.Counter != nil:
		e.start(m.Counter.CreatedTimestamp)
		e.value(i, m.Counter.GetValue())
	case m.Histogram != nil:
		e.start(m.Histogram.CreatedTimestamp)
		e.histogram(m.Histogram)
	default:
		e.value(i, m.Gauge.GetValue())
	}
	e.out = append(e.out, '}')
}

// start appends when counting started.
func (e *encoder) start(t *timestamppb.Timestamp) {
	e.out = append(e.out, `,"startTimeUnixNano":"`...)
	e.out = append(strconv.AppendInt(e.out, t.AsTime().UnixNano(), 10), '"')
}

// value appends the value of a point: an integer for counters of things, otherwise a double.
func (e *encoder) value(i *instrument, v float64) {
	if i.kind == dto.MetricType_COUNTER && i.unit[0] == '{' && v < math.MaxInt64 {
		e.out = append(append(e.out, `,"asInt":"`...), strconv.FormatInt(int64(v), 10)...)
		e.out = append(e.out, '"')
		return
	}
	e.out = strconv.AppendFloat(append(e.out, `,"asDouble":`...), v, 'g', -1, 64)
}

// histogram appends the classic buckets. Prometheus counts them cumulatively, OTLP does not.
func (e *encoder) histogram(h *dto.Histogram) {
	e.out = append(e.out, `,"count":"`...)
	e.out = append(strconv.AppendUint(e.out, h.GetSampleCount(), 10), `","sum":`...)
	e.out = append(strconv.AppendFloat(e.out, h.GetSampleSum(), 'g', -1, 64), `,"bucketCounts":[`...)
	below := uint64(0)
	for _, b := range h.Bucket {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		e.out = append(strconv.AppendUint(append(e.out, '"'), b.GetCumulativeCount()-below, 10), `",`...)
		below = b.GetCumulativeCount()
	}
	e.out = append(strconv.AppendUint(append(e.out, '"'), h.GetSampleCount()-below, 10), `"],"explicitBounds":[`...)
	for k, b := range h.Bucket {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		if k > 0 {
			e.out = append(e.out, ',')
		}
		e.out = strconv.AppendFloat(e.out, b.GetUpperBound(), 'g', -1, 64)
	}
	e.out = append(e.out, ']')
}

// attribute appends a key and its string value.
func (e *encoder) attribute(dst []byte, key, value string) []byte {
	dst = append(append(dst, `{"key":`...), e.quote(key)...)
	dst = append(append(dst, `,"value":{"stringValue":`...), e.quote(value)...)
	return append(dst, "}}"...)
}

// quote returns s as a JSON string.
func (e *encoder) quote(s string) []byte {
	q, ok := e.strings[s]
	if !ok {
		q, _ = json.Marshal(s) // strings always marshal
		e.strings[s] = q
	}
	return q
}
