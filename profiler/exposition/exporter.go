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

// Exporter tells what engines do. All methods are safe from many goroutines.
type Exporter struct {
	version  string
	began    *timestamppb.Timestamp
	registry *prometheus.Registry
	observed *observed
	pushing  atomic.Bool
	failures atomic.Uint64 // of pushes

	gather sync.Mutex // one gathers at a time

	mu      sync.Mutex // guards engines
	engines []*Engine
}

// New makes an exporter of no engines. version is llmtop's.
func New(version string) *Exporter {
	registry := prometheus.NewRegistry()
	return &Exporter{version: version, began: timestamppb.New(time.Now()), registry: registry, observed: newObserved(registry)}
}

// Add begins to tell of an engine. The name, which is made unique if it is not, becomes its label; now is the clock of its events.
func (x *Exporter) Add(name string, now func() event.Time) *Engine {
	x.mu.Lock()
	defer x.mu.Unlock()
	unique := word(name)
	for n := 2; slices.ContainsFunc(x.engines, func(e *Engine) bool { return e.label.GetValue() == unique }); n++ {
		unique = fmt.Sprintf("%s #%d", word(name), n)
	}
	e := newEngine(unique, x.observed, now)
	x.engines = append(x.engines, e)
	return e
}

// Gather implements prometheus.Gatherer: everything that there is to tell at this moment, sorted by name.
func (x *Exporter) Gather() ([]*dto.MetricFamily, error) {
	x.gather.Lock()
	defer x.gather.Unlock()
	x.mu.Lock()
	engines := slices.Clone(x.engines)
	x.mu.Unlock()

	s := &scrape{families: make(map[*instrument]*dto.MetricFamily), began: x.began, cells: MaxCells, buckets: MaxBuckets}
	s.add(build, 1, x.version)
	if x.pushing.Load() {
		s.add(pushFailures, float64(x.failures.Load()))
	}
	for _, e := range engines {
		s.engine = e
		s.snapshot(e.look())
	}
	told, err := x.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range s.families {
		told = append(told, f)
	}
	slices.SortFunc(told, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return told, nil
}
