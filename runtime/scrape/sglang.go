package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/snapshot"
)

// sglang watches SGLang by its loads, which it always tells, and by its metrics, which it tells with --enable-metrics. On this machine the loads are
// read out of shared memory.
type sglang struct {
	metrics *metrics // nil: it was started without
	shared  *shared
	noLoads bool           // it is too old for them
	spoke   event.Time     // when it has answered for its loads last
	asked   bool           // about itself
	startup []event.Number // how long its start took
}

func (*sglang) pause(interval time.Duration) time.Duration { return interval }

func (g *sglang) reconsider(*Source) { g.noLoads, g.asked = false, false }

// speakEvery is how often a server is asked for anything at least: what stands in shared memory does not say that it answers. Tests have more time.
var speakEvery = event.Time(5 * time.Second)

func (g *sglang) look(ctx context.Context, s *Source) (*event.Report, error) {
	report := &event.Report{Interval: s.since()}
	if g.metrics != nil {
		r, err := g.metrics.look(ctx, s)
		if err != nil {
			return nil, err
		}
		report = r
	} else {
		from(report, "/metrics", "the server was started without --enable-metrics")
	}
	if !g.asked {
		g.asked = true
		g.startup = s.aboutSGLang(ctx)
	}
	for _, n := range g.startup {
		more(report, n)
	}
	return report, g.loads(ctx, s, report)
}

// loads fills in where the server stands, out of shared memory or by its word.
func (g *sglang) loads(ctx context.Context, s *Source, report *event.Report) error {
	const path = "/v1/loads"
	now := s.opt.Clock.Now()
	list := g.shared.read(now)
	g.shared.tell(report)
	if told := standing(list); told != nil && (g.metrics != nil || g.spoke != 0 && now-g.spoke < speakEvery) {
		told.fill(report)
		from(report, path, "shared memory tells the same")
		return nil
	}
	if g.noLoads {
		from(report, path, "the server has none: it is too old")
		if g.metrics == nil {
			return s.isThere(ctx, report)
		}
		return nil
	}
	var told loads
	err := s.client.JSON(ctx, path+"?include=core", &told)
	refused := (*fetch.Status)(nil)
	switch {
	case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
		g.noLoads = true
		return nil
	case err != nil && g.metrics == nil:
		return err
	case err != nil: // what the metrics have told must not be lost
		from(report, path, "the server "+err.Error())
		return nil
	}
	g.spoke = now
	told.fill(report)
	from(report, path, "")
	return nil
}

// standing are loads as they are written in shared memory; nil if there are none.
func standing(list []snapshot.Load) *loads {
	if len(list) == 0 {
		return nil
	}
	out := new(loads)
	for i := range list {
		v := &list[i]
		out.Loads = append(out.Loads, load{
			Running: &v.Running, Waiting: &v.Waiting, Used: &v.Used, Total: &v.Total, Usage: &v.Usage, Rate: &v.Generated, HitShare: &v.CacheHits,
		})
	}
	return out
}

// loads are where each rank of data parallelism stands.
type loads struct {
	Loads []load `json:"loads"`
}

type load struct {
	Running  *float64 `json:"num_running_reqs"`
	Waiting  *float64 `json:"num_waiting_reqs"`
	Used     *float64 `json:"num_used_tokens"`
	Total    *float64 `json:"max_total_num_tokens"`
	Usage    *float64 `json:"token_usage"`
	Rate     *float64 `json:"gen_throughput"`
	HitShare *float64 `json:"cache_hit_rate"`
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
		return event.Told(total / over)
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
