package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// tensorRT watches trtllm-serve by its metrics, where it has some, and by what it hands out once, if that is wanted.
type tensorRT struct {
	metrics *metrics
	told    bool // that reading takes away
	none    bool // there are no metrics
}

func (*tensorRT) pause(interval time.Duration) time.Duration { return interval }

func (t *tensorRT) reconsider(*Source) { t.none = false }

func (t *tensorRT) look(ctx context.Context, s *Source) (*event.Report, error) {
	report := &event.Report{Interval: s.since()}
	if !t.none {
		err := t.metrics.read(ctx, s)
		refused := (*fetch.Status)(nil)
		switch {
		case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
			t.none = true
			if !s.opt.Drain {
				s.say("no metrics for Prometheus; its iterations are taken with --drain")
			}
		case err != nil:
			return nil, err
		default:
			report = t.metrics.report(s)
		}
	}
	if !s.opt.Drain {
		from(report, "/metrics", "it hands out each iteration once: --drain takes them")
		if t.none {
			return report, s.isThere(ctx, report)
		}
		return report, nil
	}
	if !t.told {
		t.told = true
		s.say("--drain: iterations that llmtop reads no other reader gets")
	}
	why := ""
	if err := t.drain(ctx, s, report); err != nil {
		if t.none {
			return nil, err
		}
		why = "the server " + err.Error() // what the other metrics have told must not be lost
	}
	from(report, "/metrics", why)
	return report, nil
}

// iteration is one forward pass as the server tells it.
type iteration struct {
	Number  int64   `json:"iter"`
	Latency float64 `json:"iterLatencyMS"`
	Active  float64 `json:"numActiveRequests"`
	KV      *struct {
		Used    float64 `json:"usedNumBlocks"`
		Max     float64 `json:"maxNumBlocks"`
		Tokens  float64 `json:"tokensPerBlock"`
		HitRate float64 `json:"cacheHitRate"`
	} `json:"kvCacheStats"`
}

// drain takes the iterations since the last look: each is a forward pass, and the last one tells where the server stands.
func (t *tensorRT) drain(ctx context.Context, s *Source, report *event.Report) error {
	var list []iteration
	if err := s.client.JSON(ctx, "/metrics", &list); err != nil || len(list) == 0 {
		return err
	}
	sum, count := 0.0, uint64(0)
	for _, it := range list {
		if it.Latency > 0 {
			sum += it.Latency
			count++
		}
	}
	last := list[len(list)-1]
	report.Running = event.Told(max(last.Active, 0))
	report.Times = append(report.Times, event.Times{Name: "iteration", Count: count, Sum: int64(min(sum, 1e12) * 1e6)})
	if kv := last.KV; kv != nil && kv.Max > 0 {
		report.KVUsed, report.KVTotal = event.Told(kv.Used*kv.Tokens), event.Told(kv.Max*kv.Tokens)
		report.KVUsage, report.CacheHits = event.From(kv.Used/kv.Max), event.Told(kv.HitRate)
	}
	return nil
}
