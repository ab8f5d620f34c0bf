package fleet

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// meet begins to show a replica, nil if it is one too many.
func (s *Source) meet(t target, st state) *replica {
	if len(s.replicas) >= MaxReplicas {
		s.left++
		return nil
	}
	r := &replica{}
	r.engine = event.Engine{
		Name: "replica", Caps: event.CapReports, State: event.EngineStarting, Epoch: s.opt.Clock.Epoch(), Remote: event.Remote{Address: t.instance},
	}
	r.sink = s.opt.Meet(s.name(t, st))
	s.replicas[t] = r
	return r
}

// meetDown begins to show replicas that are down: targets of jobs of which others are engines, or all targets if the user has chosen them.
func (s *Source) meetDown(ctx context.Context, states map[target]state, now float64) error {
	var down []target
	for t, st := range states {
		if s.replicas[t] == nil && st.value == 0 && (s.jobs[t.job] || s.opt.Match != "") {
			down = append(down, t)
		}
	}
	if len(down) == 0 {
		return nil
	}
	slices.SortFunc(down, target.compare)
	lastUp := make(map[target]float64)
	ask := "max_over_time(timestamp(" + selects("up", "", s.opt.Match) + " == 1)[" + lookBack + "])"
	if err := s.query(ctx, ask, now, func(p *Sample) { lastUp[targetOf(p)] = p.Value }); err != nil {
		return err
	}
	for _, t := range down {
		if r := s.meet(t, states[t]); r != nil {
			r.up = lastUp[t]
		}
	}
	return nil
}

// lookBack is how far back it is looked for when a replica was up, and how closely.
const lookBack = "6h:1m"

// name is what a replica is called: as Kubernetes does, or else as Prometheus does, with its job where there is another one of that name.
func (s *Source) name(t target, st state) string {
	name := t.instance
	if st.pod != "" {
		name = st.pod
	}
	for other := range s.replicas {
		if other.instance == t.instance && other.job != t.job {
			return name + " (" + t.job + ")"
		}
	}
	return name
}

// silentFor is for how many scrapes nothing may have come until it is told.
const silentFor = 3

// settle tells how each replica stands.
func (s *Source) settle(states map[target]state, now float64) {
	for t, r := range s.replicas {
		st, ok := states[t]
		at := s.opt.Clock.Now()
		switch {
		case !ok:
			r.link(event.LinkDisconnected, at, at, "Prometheus no longer has it as a target")
		case st.value == 0 && r.up == 0:
			r.link(event.LinkDisconnected, at, at, "Prometheus cannot scrape it, nor could it in the last 6 hours")
		case st.value == 0:
			r.link(event.LinkDisconnected, s.before(r.up, now), at, "Prometheus cannot scrape it")
		case s.gap > 0 && now-st.at > silentFor*s.gap+5:
			r.link(event.LinkStale, s.before(st.at, now), at, "")
		default:
			r.link(event.LinkConnected, at, at, "")
		}
	}
}

// linked takes in how asking went. While Prometheus does not answer nothing is known of the replicas.
func (s *Source) linked(err error) {
	now := s.opt.Clock.Now()
	link, why := event.LinkConnected, ""
	s.wait = 0
	if err != nil {
		link, why = event.LinkDisconnected, s.reason(err)
		s.wait = min(max(2*s.wait, 2*s.opt.Interval), longestWait)
		for _, r := range s.replicas {
			r.link(event.LinkStale, now, now, "")
		}
	}
	if s.left > 0 {
		s.sink.Emit(event.Event{Kind: event.KindLog, At: now, Layer: -1, Text: strconv.Itoa(s.left) + " replicas are left out: choose fewer with --match"})
		s.left = 0
	}
	if s.self.Remote.Turn(link, why, now) {
		tell := s.self
		s.sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &tell})
	}
}

// reason is an error in the words of a user.
func (s *Source) reason(err error) string {
	var refused *fetch.Status
	if errors.As(err, &refused) && refused.NeedsKey() {
		if s.opt.Key != "" {
			return "Prometheus does not take this key"
		}
		return "Prometheus needs a key: --api-key-file FILE, or $LLMTOP_API_KEY"
	}
	return s.client.Hide(err.Error())
}
