package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// tensorRT collects the Prometheus metrics of trtllm-serve, if it has some, and with --drain its iterations, which it
// returns only once.
type tensorRT struct {
	metrics   *metrics
	warned    bool // the warning that other readers miss data was logged
	noMetrics bool // the server has no Prometheus metrics
}

func (*tensorRT) interval(interval time.Duration) time.Duration { return interval }

func (t *tensorRT) recheck(*Poller) { t.noMetrics = false }

func (t *tensorRT) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	report := &event.Aggregates{Interval: s.sinceReport()}
	if !t.noMetrics {
		err := t.metrics.read(ctx, s)
		refused := (*fetch.StatusError)(nil)
		switch {
		case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
			t.noMetrics = true
			if !s.opt.Drain {
				s.logf("no Prometheus metrics: read the iterations with --drain")
			}
		case err != nil:
			return nil, err
		default:
			report = t.metrics.report(s)
		}
	}
	if !s.opt.Drain {
		addEndpoint(report, "/metrics", "the server returns each iteration only once: read them with --drain")
		if t.noMetrics {
			return report, s.checkAlive(ctx, report)
		}
		return report, nil
	}
	if !t.warned {
		t.warned = true
		s.logf("--drain: other readers miss the iterations that llmtop reads")
	}
	why := ""
	if err := t.drain(ctx, s, report); err != nil {
		if t.noMetrics {
			return nil, err
		}
		why = err.Error() // the error must not discard the other metrics
	}
	addEndpoint(report, "/metrics", why)
	return report, nil
}

// iteration is a forward pass as the server reports it.
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

// drain reads the iterations since the last poll: each is one forward pass, and the last one has the current state.
func (t *tensorRT) drain(ctx context.Context, s *Poller, report *event.Aggregates) error {
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
	report.Running = event.ReportedValue(last.Active)
	report.Histograms = append(report.Histograms, event.Histogram{Name: "iteration", Count: count, Sum: int64(min(sum, 1e12) * 1e6)})
	if kv := last.KV; kv != nil && kv.Used >= 0 && kv.Max > 0 {
		report.KVUsed, report.KVTotal = event.ReportedValue(kv.Used*kv.Tokens), event.ReportedValue(kv.Max*kv.Tokens)
		report.KVUsage, report.CacheHits = event.DerivedValue(kv.Used/kv.Max), event.ReportedValue(kv.HitRate)
	}
	return nil
}
