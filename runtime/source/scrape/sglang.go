package scrape

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// sglang collects the loads of SGLang, which are always available, and its metrics if it was started with
// --enable-metrics.
type sglang struct {
	metrics  *metrics             // nil: started without --enable-metrics
	noLoads  bool                 // the server is too old to report loads
	infoRead bool                 // /server_info was read
	startup  []event.NamedReading // startup durations
}

func (*sglang) interval(interval time.Duration) time.Duration { return interval }

func (g *sglang) recheck(*Poller) { g.noLoads, g.infoRead = false, false }

func (g *sglang) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	report := &event.Aggregates{Interval: s.sinceReport()}
	if g.metrics != nil {
		r, err := g.metrics.collect(ctx, s)
		if err != nil {
			return nil, err
		}
		report = r
	} else {
		addEndpoint(report, "/metrics", "the server was started without --enable-metrics")
	}
	if !g.infoRead {
		g.infoRead = true
		g.startup = readServerInfo(ctx, s)
	}
	for _, n := range g.startup {
		addReading(report, n)
	}
	return report, g.readLoads(ctx, s, report)
}

// readLoads adds the current load to the report, from /v1/loads.
func (g *sglang) readLoads(ctx context.Context, s *Poller, report *event.Aggregates) error {
	const path = "/v1/loads"
	if why := g.metrics.several(); why != "" {
		addEndpoint(report, path, why)
		return nil
	}
	if g.noLoads {
		addEndpoint(report, path, "not supported by this server version")
		if g.metrics == nil {
			return s.checkAlive(ctx, report)
		}
		return nil
	}
	var response loads
	err := s.client.JSON(ctx, path+"?include=core", &response)
	refused := (*fetch.StatusError)(nil)
	switch {
	case errors.As(err, &refused) && refused.Code == http.StatusNotFound:
		g.noLoads = true
		return nil
	case err != nil && g.metrics == nil:
		return err
	case err != nil: // the error must not discard the metrics
		addEndpoint(report, path, err.Error())
		return nil
	}
	response.fill(report)
	addEndpoint(report, path, "")
	return nil
}

// loads holds the current load of each data-parallel rank.
type loads struct {
	Loads []load `json:"loads"`
}

type load struct {
	Rank     *int     `json:"dp_rank"`
	Running  *float64 `json:"num_running_reqs"`
	Waiting  *float64 `json:"num_waiting_reqs"`
	Used     *float64 `json:"num_used_tokens"`
	Total    *float64 `json:"max_total_num_tokens"`
	Usage    *float64 `json:"token_usage"`
	Rate     *float64 `json:"gen_throughput"`
	HitShare *float64 `json:"cache_hit_rate"`
}

// fill replaces values from the metrics by those of the loads, which are newer by some steps.
func (l *loads) fill(report *event.Aggregates) {
	seen := make(map[int]bool)
	l.Loads = slices.DeleteFunc(l.Loads, func(one load) bool { // ranks that share the work of another one repeat its load
		repeats := one.Rank != nil && seen[*one.Rank]
		if one.Rank != nil {
			seen[*one.Rank] = true
		}
		return repeats
	})
	n := float64(len(l.Loads))
	sum := func(field func(i int) *float64, divisor float64) event.Reading {
		total, found := 0.0, false
		for i := range l.Loads {
			if v := field(i); v != nil && *v >= 0 {
				total, found = total+*v, true
			}
		}
		if !found {
			return event.Reading{}
		}
		return event.ReportedValue(total / divisor)
	}
	for _, f := range []struct {
		into *event.Reading
		from event.Reading
		only bool // only if the metrics do not have it
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
