package exposition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// maxPoints is how many data points a message has at most. A point takes about 400 bytes, so a message stays well below
// the 20 MB that collectors accept.
const maxPoints = 8192

// cumulative is AGGREGATION_TEMPORALITY_CUMULATIVE; OTLP's JSON writes enumerations as numbers.
const cumulative = 2

// point is a data point in OTLP's JSON: 64-bit integers are strings.
// Specification: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
type point struct {
	Attributes   attributes `json:"attributes"`
	Time         string     `json:"timeUnixNano"`
	Start        string     `json:"startTimeUnixNano,omitempty"`
	Int          string     `json:"asInt,omitempty"`
	Double       *float64   `json:"asDouble,omitempty"`
	Count        string     `json:"count,omitempty"`
	Sum          *float64   `json:"sum,omitempty"`
	BucketCounts []string   `json:"bucketCounts,omitempty"` // one more than Bounds
	Bounds       []float64  `json:"explicitBounds,omitempty"`
}

// encodeMetrics encodes families as OTLP's ExportMetricsServiceRequests in JSON of at most maxPoints points each. It skips
// families that are not instruments of this package.
func encodeMetrics(families []*dto.MetricFamily, now time.Time, version, instance string) (messages [][]byte, err error) {
	var metrics []any
	room := maxPoints
	flush := func() error {
		message, err := encodeOTLP("Metrics", metrics, version, instance)
		messages, metrics, room = append(messages, message), metrics[:0], maxPoints
		return err
	}
	stamp := strconv.FormatInt(now.UnixNano(), 10)
	for _, f := range families {
		i := byPromName()[f.GetName()]
		if i == nil {
			continue
		}
		for rest := f.Metric; len(rest) > 0; {
			points := make([]point, min(len(rest), room))
			for k := range points {
				points[k] = i.point(rest[k], stamp)
			}
			metrics = append(metrics, i.metric(points))
			if rest, room = rest[len(points):], room-len(points); room > 0 {
				continue
			}
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if len(metrics) == 0 {
		return messages, nil
	}
	return messages, flush()
}

// encodeOTLP encodes a request that exports a list of "Metrics" or "Spans".
func encodeOTLP(what string, list any, version, instance string) ([]byte, error) {
	var resource attributes
	resource.text("service.name", "llmtop")
	resource.text("service.version", version)
	resource.text("service.instance.id", instance)
	message, err := json.Marshal(map[string]any{"resource" + what: []any{map[string]any{
		"resource": map[string]any{"attributes": resource}, "schemaUrl": schemaURL,
		"scope" + what: []any{map[string]any{
			"scope": map[string]string{"name": "github.com/llmtop/llmtop", "version": version}, "schemaUrl": schemaURL, strings.ToLower(what): list,
		}},
	}}})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", strings.ToLower(what), err)
	}
	return message, nil
}

// byPromName returns the instruments by their names in Prometheus.
var byPromName = sync.OnceValue(func() map[string]*instrument {
	all := make(map[string]*instrument, len(instruments))
	for _, i := range instruments {
		all[i.promName] = i
	}
	return all
})

// metric returns the instrument with some of its points.
func (i *instrument) metric(points []point) any {
	data, kind := map[string]any{"dataPoints": points}, "gauge"
	switch i.kind {
	case dto.MetricType_COUNTER:
		kind, data["isMonotonic"] = "sum", true
	case dto.MetricType_HISTOGRAM:
		kind = "histogram"
	}
	if kind != "gauge" {
		data["aggregationTemporality"] = cumulative
	}
	return map[string]any{"name": i.name, "description": i.help, "unit": i.unit, kind: data}
}

// point returns a data point. A label without a value is one that Prometheus treats as absent.
func (i *instrument) point(m *dto.Metric, stamp string) point {
	p := point{Attributes: make(attributes, 0, len(m.Label)), Time: stamp}
	for _, l := range m.Label {
		p.Attributes.text(i.attrs[slices.Index(i.labels, l.GetName())], l.GetValue())
	}
	if t := cmp.Or(m.GetCounter().GetCreatedTimestamp(), m.GetHistogram().GetCreatedTimestamp()); t != nil {
		p.Start = strconv.FormatInt(t.AsTime().UnixNano(), 10)
	}
	switch v := m.GetCounter().GetValue(); {
	case m.Histogram != nil:
		p.histogram(m.Histogram)
	case m.Counter == nil:
		p.Double = m.Gauge.Value
	case i.unit[0] == '{' && v < math.MaxInt64: // things are counted in whole numbers
		p.Int = strconv.FormatInt(int64(v), 10)
	default:
		p.Double = &v
	}
	return p
}

// histogram sets the classic buckets. Prometheus counts them cumulatively, OTLP does not.
func (p *point) histogram(h *dto.Histogram) {
	p.Count, p.Sum = strconv.FormatUint(h.GetSampleCount(), 10), h.SampleSum
	below := uint64(0)
	add := func(upTo uint64) {
		p.BucketCounts = append(p.BucketCounts, strconv.FormatUint(upTo-below, 10))
		below = upTo
	}
	for _, b := range h.Bucket {
		if !math.IsInf(b.GetUpperBound(), 1) {
			add(b.GetCumulativeCount())
			p.Bounds = append(p.Bounds, b.GetUpperBound())
		}
	}
	add(h.GetSampleCount())
}
