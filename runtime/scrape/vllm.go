package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/gather"
)

// vllm watches vLLM by its metrics, and where it keeps none by the number of requests that it works on.
type vllm struct {
	metrics *metrics
	without bool // it keeps no metrics
	counts  bool // it has told of requests: it does count them
}

func (*vllm) pause(interval time.Duration) time.Duration { return interval }

func (v *vllm) reconsider(*Source) { v.without = false }

// stands tells whether the engine has been put to sleep, as vLLM's users do to use the GPU otherwise.
func (v *vllm) stands(s *Source) {
	if v.metrics.from.Sleeps() {
		s.stands(event.EnginePaused, "the model sleeps until it is woken")
	} else {
		s.stands(event.EngineReady, "")
	}
}

func (v *vllm) look(ctx context.Context, s *Source) (*event.Report, error) {
	if !v.without {
		report, err := v.metrics.look(ctx, s)
		refused := (*fetch.Status)(nil)
		if v.stands(s); !errors.Is(err, gather.ErrUnknown) && !(errors.As(err, &refused) && refused.Code == http.StatusNotFound) {
			return report, err
		}
		v.without = true
	}
	report := &event.Report{Interval: s.since()}
	var load struct {
		Requests float64 `json:"server_load"`
	}
	if err := s.client.JSON(ctx, "/load", &load); err != nil {
		return nil, err
	}
	if v.counts = v.counts || load.Requests > 0; v.counts { // without --enable-server-load-tracking it is always 0
		report.Running = reported(max(load.Requests, 0))
	}
	return report, nil
}
