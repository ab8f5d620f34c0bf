package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// sglang watches SGLang by its loads, which it always tells, and by its metrics, which it tells with --enable-metrics.
type sglang struct {
	metrics *metrics // nil: it was started without
	noLoads bool     // it is too old for them
	asked   bool     // what it publishes
}

func (*sglang) pause(interval time.Duration) time.Duration { return interval }

func (g *sglang) reconsider(*Source) { g.noLoads = false }

func (g *sglang) look(ctx context.Context, s *Source) (*event.Report, error) {
	report := &event.Report{Interval: s.since()}
	if g.metrics != nil {
		if err := g.metrics.read(ctx, s); err != nil {
			return nil, err
		}
		report = g.metrics.from.Report(s.since())
	}
	if !g.asked {
		g.asked = true
		s.passes(ctx)
	}
	if g.noLoads {
		return report, nil
	}
	var told loads
	err := s.client.JSON(ctx, "/v1/loads?include=core", &told)
	refused := (*fetch.Status)(nil)
	switch {
	case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
		g.noLoads = true
	case err != nil:
		return nil, err
	default:
		told.fill(report)
	}
	return report, nil
}

// loads are where each rank of data parallelism stands.
type loads struct {
	Loads []struct {
		Running  *float64 `json:"num_running_reqs"`
		Waiting  *float64 `json:"num_waiting_reqs"`
		Used     *float64 `json:"num_used_tokens"`
		Total    *float64 `json:"max_total_num_tokens"`
		Usage    *float64 `json:"token_usage"`
		Rate     *float64 `json:"gen_throughput"`
		HitShare *float64 `json:"cache_hit_rate"`
	} `json:"loads"`
}

// fill puts what the loads tell in place of what the metrics tell, which is older by some steps.
func (l *loads) fill(report *event.Report) {
	n := float64(len(l.Loads))
	sum := func(of func(i int) *float64, over float64) event.Reading {
		total, told := 0.0, false
		for i := range l.Loads {
			if v := of(i); v != nil && *v >= 0 {
				total, told = total+*v, true
			}
		}
		if !told {
			return event.Reading{}
		}
		return reported(total / over)
	}
	for _, f := range []struct {
		into *event.Reading
		from event.Reading
		only bool // where the metrics do not tell it
	}{
		{&report.Running, sum(func(i int) *float64 { return l.Loads[i].Running }, 1), false},
		{&report.Waiting, sum(func(i int) *float64 { return l.Loads[i].Waiting }, 1), false},
		{&report.KVUsed, sum(func(i int) *float64 { return l.Loads[i].Used }, 1), false},
		{&report.KVTotal, sum(func(i int) *float64 { return l.Loads[i].Total }, 1), false},
		{&report.KVUsage, sum(func(i int) *float64 { return l.Loads[i].Usage }, n), false},
		{&report.Decode, sum(func(i int) *float64 { return l.Loads[i].Rate }, 1), true},
		{&report.CacheHits, sum(func(i int) *float64 { return l.Loads[i].HitShare }, n), true},
	} {
		if f.from.OK() && !(f.only && f.into.OK()) {
			*f.into = f.from
		}
	}
}
