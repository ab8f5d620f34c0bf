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
	readings func(loaded []event.Model) []event.NamedReading // nil: none
}

func (l listing) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	models, err := s.listModels(ctx)
	if err != nil || !s.identified {
		return nil, err
	}
	s.info.Models = models
	s.setModels(loaded(models))
	report := &event.Aggregates{Interval: s.sinceReport()}
	addEndpoint(report, cmp.Or(s.info.ModelsPath, "/v1/models"), "")
	if l.readings != nil {
		report.More = l.readings(loaded(models))
	}
	return report, nil
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

func (listing) interval(interval time.Duration) time.Duration { return max(interval, listEvery) }
