package exposition

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmtop/llmtop/profiler/event"
)

// Exporter exports the metrics of engines. All methods are safe for concurrent use.
type Exporter struct {
	version        string
	began          *timestamppb.Timestamp
	registry       *prometheus.Registry
	requestMetrics *requestMetrics
	pushing        atomic.Bool
	failures       atomic.Uint64 // failed pushes
	spans          spanQueue

	gather sync.Mutex // held while metrics are gathered: one gathering at a time

	mu      sync.Mutex // guards engines
	engines []*EngineExporter
}

// New returns an exporter without engines. version is the version of llmtop.
func New(version string) *Exporter {
	registry := prometheus.NewRegistry()
	return &Exporter{version: version, began: timestamppb.New(time.Now()), registry: registry, requestMetrics: newRequestMetrics(registry)}
}

// Add adds an engine. Its label is the name, made unique if necessary; now is the clock of its events.
func (x *Exporter) Add(name string, now func() event.Time) *EngineExporter {
	x.mu.Lock()
	defer x.mu.Unlock()
	unique := cleanLabel(name)
	for n := 2; slices.ContainsFunc(x.engines, func(e *EngineExporter) bool { return e.label.GetValue() == unique }); n++ {
		unique = fmt.Sprintf("%s #%d", cleanLabel(name), n)
	}
	e := newEngine(unique, x.requestMetrics, now)
	e.spans = &x.spans
	x.engines = append(x.engines, e)
	return e
}

// Gather implements prometheus.Gatherer: it returns the current metrics, sorted by name.
func (x *Exporter) Gather() ([]*dto.MetricFamily, error) {
	x.gather.Lock()
	defer x.gather.Unlock()
	x.mu.Lock()
	engines := slices.Clone(x.engines)
	x.mu.Unlock()

	s := &gathering{families: make(map[*instrument]*dto.MetricFamily), began: x.began, room: MaxCells, buckets: MaxBuckets}
	s.add(build, 1, x.version)
	for _, e := range engines {
		s.engine = e
		s.snapshot(e.refresh())
	}
	s.engine = nil
	if x.pushing.Load() { // after refresh, which counts requests
		s.add(pushFailures, float64(x.failures.Load()))
		s.add(droppedSpans, float64(x.spans.lost()))
	}
	all, err := x.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range s.families {
		if i := slices.IndexFunc(all, func(g *dto.MetricFamily) bool { return g.GetName() == f.GetName() }); i >= 0 {
			all[i].Metric = append(all[i].Metric, f.Metric...)
		} else {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}
