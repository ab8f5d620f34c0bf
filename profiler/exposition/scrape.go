package exposition

import (
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/event"
)

// scrape is what is told of snapshots at one moment.
type scrape struct {
	families map[*instrument]*dto.MetricFamily
	engine   *Engine // that is being told of; nil: none in particular
	began    *timestamppb.Timestamp
	cells    int // of MaxCells, not used yet
	buckets  int // of MaxBuckets, likewise
}

// family is that of an instrument, in which there is nothing yet or what other engines have told.
func (s *scrape) family(i *instrument) *dto.MetricFamily {
	f := s.families[i]
	if f == nil {
		f = &dto.MetricFamily{Name: &i.spelled, Help: &i.help, Type: &i.kind}
		s.families[i] = f
	}
	return f
}

// add tells a number, with the values of the instrument's attributes but the engine. A counter has counted since the exporter began.
func (s *scrape) add(i *instrument, v float64, values ...string) {
	s.count(i, v, s.began, values...)
}

// reading tells a number unless it is absent.
func (s *scrape) reading(i *instrument, r event.Reading, values ...string) {
	if r.OK() {
		s.add(i, r.V, values...)
	}
}

// count tells a number that, if it is a counter's, has been counted since the given moment.
func (s *scrape) count(i *instrument, v float64, since *timestamppb.Timestamp, values ...string) {
	m := s.metric(i, values)
	if i.kind == dto.MetricType_COUNTER {
		m.Counter = &dto.Counter{Value: &v, CreatedTimestamp: since}
	} else {
		m.Gauge = &dto.Gauge{Value: &v}
	}
}

// metric adds one to the family of an instrument, with its labels and no value.
func (s *scrape) metric(i *instrument, values []string) *dto.Metric {
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

// counted names what something outside counts.
type counted struct {
	by   *instrument
	what string
}

// epoch is since when something outside has counted.
type epoch struct {
	shape int
	total uint64
	since *timestamppb.Timestamp
}

// since is from when on an engine's own counts are. They begin anew when their total has gone down or their shape has changed.
func (s *scrape) since(i *instrument, what string, shape int, total uint64) *timestamppb.Timestamp {
	key := counted{i, what}
	e, known := s.engine.epochs[key]
	switch {
	case !known:
		e.since = s.began
	case shape != e.shape || total < e.total:
		e.since = timestamppb.Now()
	}
	e.shape, e.total = shape, total
	s.engine.epochs[key] = e
	return e.since
}
