package scrape

import (
	"cmp"
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// How often servers are asked that tell nothing but their models. Tests have less time.
var (
	listEvery   = 5 * time.Second
	ollamaEvery = 2 * time.Second
)

// listing watches a server of which nothing is known but its models: that it is there, and which they are.
type listing struct{}

func (listing) look(ctx context.Context, s *Source) (*event.Report, error) {
	models, err := s.again(ctx)
	if err != nil || !s.met {
		return nil, err
	}
	s.info.Models = models
	s.models(loaded(models))
	report := &event.Report{Interval: s.since()}
	from(report, cmp.Or(s.info.List, "/v1/models"), "")
	if s.kind == identify.LMStudio {
		report.More = inMemory(loaded(models))
	}
	return report, nil
}

// again asks a server for its models, which shows that it is there where nothing else is left to ask it for. s.met is false where another one has taken
// its place.
func (s *Source) again(ctx context.Context) ([]identify.Model, error) {
	models, same, err := identify.Again(ctx, s.client, s.kind, &s.info)
	if err != nil {
		return nil, err
	}
	s.met = same
	return models, nil
}

// isThere asks for the models of a server that tells nothing else, only to see that it answers.
func (s *Source) isThere(ctx context.Context, report *event.Report) error {
	from(report, "/v1/models", "")
	_, err := s.again(ctx)
	return err
}

// inMemory counts models, and what is known of the sizes of their files.
func inMemory(list []event.Model) (out []event.Number) {
	bytes := int64(0)
	for i := range list {
		bytes += list[i].Bytes
	}
	if bytes > 0 {
		out = append(out, event.Number{Name: "model_file_bytes", Reading: event.From(float64(bytes))})
	}
	return append(out, event.Number{Name: "models_in_memory", Reading: event.From(float64(len(list)))})
}

func (listing) pause(interval time.Duration) time.Duration { return max(interval, listEvery) }
