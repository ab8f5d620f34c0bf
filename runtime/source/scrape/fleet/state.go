package fleet

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// addReplica adds a replica; nil above MaxReplicas.
func (s *Poller) addReplica(t target, st *up) *replica {
	if len(s.replicas) >= MaxReplicas {
		s.omitted++
		return nil
	}
	r := &replica{}
	r.engine = event.EngineInfo{
		Name: "replica", Caps: event.CapAggregates, State: event.EngineStarting, Epoch: s.opt.Clock.Epoch(), Remote: event.Remote{Address: t.instance},
	}
	r.sink = s.opt.OnReplica(s.replicaName(t, st))
	s.replicas[t] = r
	return r
}

// addDownReplicas adds replicas that are down: targets of jobs that have other engines, or all selected targets if the
// user has given --match. If another target with the same instance is a replica, it is reached.
func (s *Poller) addDownReplicas(ctx context.Context, states map[target]*up, now float64) error {
	var down []target
	for t, st := range states {
		if st.value == 0 && (s.jobs[t.job] || s.opt.Match != "") && !s.isReplica(t.instance) {
			down = append(down, t)
		}
	}
	if len(down) == 0 {
		return nil
	}
	slices.SortFunc(down, target.compare)
	lastUp := make(map[target]float64)
	ask := "max_over_time(timestamp(" + selector("up", "", s.opt.Match) + " == 1)[" + lookBack + "])"
	if err := s.query(ctx, ask, now, func(p *Sample) { lastUp[targetOf(p)] = p.Value }); err != nil {
		return err
	}
	for _, t := range down {
		if r := s.addReplica(t, states[t]); r != nil {
			r.lastUp = lastUp[t]
		}
	}
	return nil
}

// lookBack is the range and resolution of the search for the last time a replica was up.
const lookBack = "6h:1m"

// replicaName returns the pod or instance name, followed by the job if another job has the same instance.
func (s *Poller) replicaName(t target, st *up) string {
	name, job, labels := t.instance, "", ""
	if pod := st.labels["pod"]; pod != "" { // of Kubernetes
		name = pod
	}
	for other := range s.replicas {
		switch {
		case other.instance != t.instance:
		case other.job != t.job:
			job = " (" + t.job + ")"
		default:
			labels = " (" + s.instances[t.instance].describe(t) + ")"
		}
	}
	return name + cmp.Or(labels, job)
}

// isReplica reports whether there is a replica with an instance.
func (s *Poller) isReplica(instance string) bool {
	for t := range s.replicas {
		if t.instance == instance {
			return true
		}
	}
	return false
}

// staleScrapes is the number of missed scrapes after which a replica is stale.
const staleScrapes = 3

// updateLinks emits the connection state of each replica: of copies, that of the one that was scraped last.
func (s *Poller) updateLinks(states map[target]*up, now float64) {
	best := make(map[*replica]target, len(s.replicas))
	for t, r := range s.replicas {
		b, ok := best[r]
		if !ok || newer(states[t], states[b]) {
			best[r] = t
		}
	}
	for r, t := range best {
		st, ok := states[t]
		at := s.opt.Clock.Now()
		switch {
		case !ok:
			r.setLink(event.LinkDisconnected, at, at, "no longer a target of Prometheus")
		case st.value == 0 && r.lastUp == 0:
			r.setLink(event.LinkDisconnected, at, at, "Prometheus cannot scrape it (not once in the last 6 hours)")
		case st.value == 0:
			r.setLink(event.LinkDisconnected, s.sessionTime(r.lastUp, now), at, "Prometheus cannot scrape it")
		case s.scrapeInterval > 0 && now-st.at > staleScrapes*s.scrapeInterval+5:
			r.setLink(event.LinkStale, s.sessionTime(st.at, now), at, "")
		default:
			r.setLink(event.LinkConnected, at, at, "")
		}
	}
}

// newer reports whether a target was scraped later than another one, or is up while that is down; nil is no target.
func newer(t, other *up) bool {
	switch {
	case t == nil || other == nil:
		return t != nil
	case t.value != other.value:
		return t.value > other.value
	}
	return t.at > other.at
}

// setLink records the result of a poll. While Prometheus does not respond, all replicas are stale.
func (s *Poller) setLink(err error) {
	now := s.opt.Clock.Now()
	link, why := event.LinkConnected, ""
	s.backoff = 0
	if err != nil {
		link, why = event.LinkDisconnected, s.client.Explain(err, "Prometheus rejects this API key", "Prometheus requires an API key")
		s.backoff = min(max(2*s.backoff, 2*s.opt.Interval), maxBackoff)
		for _, r := range s.replicas {
			r.setLink(event.LinkStale, now, now, "")
		}
	}
	if s.omitted > 0 {
		s.sink.Emit(event.Event{Kind: event.KindLog, At: now, Layer: -1, Text: strconv.Itoa(s.omitted) + " replicas omitted: select fewer with --match"})
		s.omitted = 0
	}
	if err == nil {
		s.self.State = event.EngineReady // and stays so: it has been reached
	}
	if s.self.Remote.Update(link, why, now) {
		info := s.self
		s.sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &info})
	}
}
