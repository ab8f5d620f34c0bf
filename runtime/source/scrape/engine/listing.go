package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// listEvery is the shortest time between two polls of servers that report only their models. Tests use a shorter time.
var listEvery = 5 * time.Second

// loaded returns the models that are in memory.
func loaded(all []Model) (out []event.Model) {
	for _, m := range all {
		if m.Loaded {
			out = append(out, m.Model)
		}
	}
	return out
}

// listing collects from a server that reports only its models: the models, and that the server responds.
type listing struct {
	looks    int                                             // for metrics of an unknown server
	readings func(loaded []event.Model) []event.NamedReading // nil: none
}

func (l *listing) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	models, err := s.listModels(ctx)
	if err != nil || !s.identified {
		return nil, err
	}
	s.info.Models = models
	s.setModels(loaded(models))
	report := &event.Aggregates{Interval: s.sinceReport()}
	addEndpoint(report, cmp.Or(s.info.ModelsPath, "/v1/models"), "")
	if s.info.Kind == OpenAI {
		l.looks++
		s.lookForMetrics(ctx, report)
	}
	if l.readings != nil {
		report.More = l.readings(loaded(models))
	}
	return report, nil
}

// lookForMetrics searches an unknown server for metrics again: some have them only once a model is loaded. If it finds those
// of an engine, the server is identified again.
func (s *Poller) lookForMetrics(ctx context.Context, report *event.Aggregates) {
	p := &identification{client: s.client}
	for _, path := range append([]string{"/metrics"}, s.client.Above("/metrics")...) {
		if p.sniff(ctx, path) {
			s.identified = false
			s.wakeUp()
			return
		}
	}
	if p.info.Others != "" {
		addEndpoint(report, "/metrics", p.info.Others)
	}
}

// wakeUp makes the next poll start at once.
func (s *Poller) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// listModels requests the list of models. It also serves as a liveness check where no other endpoint is left. It clears
// s.identified if another kind of server responds.
func (s *Poller) listModels(ctx context.Context) ([]Model, error) {
	models, same, err := listModels(ctx, s.client, &s.info)
	if err != nil {
		return nil, err
	}
	s.identified = same
	return models, nil
}

// checkAlive requests the list of models only to check that the server responds.
func (s *Poller) checkAlive(ctx context.Context, report *event.Aggregates) error {
	addEndpoint(report, "/v1/models", "")
	_, err := s.listModels(ctx)
	return err
}

// firstLooks is how often metrics are looked for at a shorter interval: at first a model may be loading.
const firstLooks = 30

func (l *listing) interval(interval time.Duration) time.Duration {
	if l.looks > 0 && l.looks < firstLooks {
		return max(interval, listEvery*2/5)
	}
	return max(interval, listEvery)
}
