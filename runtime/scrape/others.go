package scrape

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// reported is a number that a server tells.
func reported(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }

// listEvery is how often a server is asked that tells nothing but its models.
const listEvery = 5 * time.Second

// listing watches a server of which nothing is known but its models: that it is there, and which they are.
type listing struct{}

func (listing) look(ctx context.Context, s *Source) (*event.Report, error) {
	kind, info, err := identify.Identify(ctx, s.client)
	if err != nil {
		return nil, err
	}
	if kind != s.kind {
		s.met = false // another server has taken its place
		return nil, nil
	}
	s.info = info
	s.models(loaded(info.Models))
	return &event.Report{Interval: s.since()}, nil
}

func (listing) pause(interval time.Duration) time.Duration { return max(interval, listEvery) }

// ollama watches the models that Ollama has in memory. It tells nothing of requests; the llama-server that it starts for each model does.
type ollama struct{}

func (*ollama) look(ctx context.Context, s *Source) (*event.Report, error) {
	running, err := identify.RunningOllama(ctx, s.client)
	if err != nil {
		return nil, err
	}
	var list []event.Model
	var memory, vram int64
	for _, m := range running {
		list = append(list, m.Model)
		memory, vram = memory+m.Memory, vram+m.VRAM
	}
	s.models(list)
	report := &event.Report{Interval: s.since()}
	if memory > 0 {
		report.More = []event.Number{
			{Name: "gpu_memory_share", Reading: event.From(float64(vram) / float64(memory))},
			{Name: "model_memory_bytes", Reading: reported(float64(memory))},
		}
	}
	return report, nil
}

func (*ollama) pause(interval time.Duration) time.Duration { return max(interval, 2*time.Second) }
