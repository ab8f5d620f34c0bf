package exposition

import (
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/event"
)

// gathering collects the metrics of snapshots during one call of Gather.
type gathering struct {
	families map[*instrument]*dto.MetricFamily
	engine   *EngineExporter // being added; nil: metrics of the exporter itself
	began    *timestamppb.Timestamp
	room     int // left of MaxCells
	buckets  int // left of MaxBuckets
}

// family returns the family of an instrument, creating it if necessary.
func (s *gathering) family(i *instrument) *dto.MetricFamily {
	f := s.families[i]
	if f == nil {
		f = &dto.MetricFamily{Name: &i.promName, Help: &i.help, Type: &i.kind}
		s.families[i] = f
	}
	return f
}

// add adds a value with the values of the instrument's attributes other than the engine. Counters count from the start
// of the exporter.
func (s *gathering) add(i *instrument, v float64, values ...string) {
	s.count(i, v, s.began, values...)
}

// reading adds a reading unless it is absent.
func (s *gathering) reading(i *instrument, r event.Reading, values ...string) {
	if r.OK() {
		s.add(i, r.V, values...)
	}
}

// count adds a value; if the instrument is a counter, it has counted from the given time.
func (s *gathering) count(i *instrument, v float64, since *timestamppb.Timestamp, values ...string) {
	m := s.metric(i, values)
	if i.kind == dto.MetricType_COUNTER {
		m.Counter = &dto.Counter{Value: &v, CreatedTimestamp: since}
	} else {
		m.Gauge = &dto.Gauge{Value: &v}
	}
}

// metric appends a metric without a value to the family of an instrument, with its labels.
func (s *gathering) metric(i *instrument, values []string) *dto.Metric {
	m := &dto.Metric{Label: make([]*dto.LabelPair, 0, len(i.labels))}
	labels := i.labels
	if s.engine != nil {
		m.Label, labels = append(m.Label, s.engine.label), labels[1:]
	}
	for k := range labels {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[k], Value: &values[k]})
	}
	f := s.family(i)
	f.Metric = append(f.Metric, m)
	return m
}

// epoch is when a cumulative count that the engine or the system keeps started, and its last total.
type epoch struct {
	shape int
	total uint64
	since *timestamppb.Timestamp
}

// countingSince returns when an engine's own counts started. They have been reset if the total has decreased or the
// shape has changed.
func (s *gathering) countingSince(i *instrument, what string, shape int, total uint64) *timestamppb.Timestamp {
	key := [...]string{i.name, what}
	e, seen := s.engine.epochs[key]
	switch {
	case !seen:
		e.since = s.began
	case shape != e.shape || total < e.total:
		e.since = timestamppb.Now()
	}
	e.shape, e.total = shape, total
	s.engine.epochs[key] = e
	return e.since
}
