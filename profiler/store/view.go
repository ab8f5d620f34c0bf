package store

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Snapshot applies queued events and returns the current state. It returns the previous snapshot if nothing has
// changed. It may be called from any goroutine, for example 30 times a second.
func (s *Store) Snapshot() *Snapshot {
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.lastSnapshot == nil || s.lastSnapshot.Version != s.state.version || now-s.lastSnapshot.Now >= event.Time(snapshotMaxAge) {
		s.lastSnapshot = s.state.snapshot(now, s.opt.Wall())
	}
	return s.lastSnapshot
}

// snapshot returns the state at the given time.
func (st *state) snapshot(now event.Time, wall time.Time) *Snapshot {
	st.closeSeconds(now)
	v := &Snapshot{
		Version: st.version, Now: now, Wall: wall, Started: st.started,
		Engine: st.engine, Model: st.model, Load: st.load,
		Host: st.host, Log: slices.Clip(st.log), Drops: st.sourceDrops, KV: st.kv, Ops: st.ops, Counters: st.counters,
	}
	for k, n := range st.queueDrops {
		v.Drops[k] += n
	}
	v.Host.Series = slices.Clip(st.host.Series)
	v.KV.Residency = st.residency.Summary()
	st.viewRequests(v)
	st.viewLatency(v)
	st.viewRates(v)
	if st.experts != nil {
		v.Experts = st.experts.view(now, st.picksSinceDispatch)
	}
	if st.tokenPicks != nil {
		v.Picks = st.tokenPicks.view(now)
	}
	if st.aggregates != nil {
		v.Aggregates = st.aggregates.view(now)
	}
	v.Verdicts = st.judge.Judge(v.evidence())
	return v
}

// closeSeconds closes the seconds that have ended, starting with that of the first event.
func (s *state) closeSeconds(now event.Time) {
	if !s.hasEvents {
		return
	}
	last := int64(now)/int64(second) - 1
	from := int64(s.started) / int64(second)
	if n := len(s.rates.points); n > 0 {
		from = int64(s.rates.points[n-1].At)/int64(second) + 1
	}
	for sec := max(from, last-SeriesLen+1); sec <= last; sec++ {
		s.closeSecond(sec)
	}
	s.latency.spreads.advance(now)
}

// closeSecond appends the points of an ended second to the series.
func (s *state) closeSecond(sec int64) {
	at := event.Time(sec * int64(second))
	p := RatePoint{
		At: at, KVUsed: int(s.kv.Used), KVShare: math.NaN(),
		Queued: s.requests.count(event.StateQueued), Running: s.requests.count(event.StateDispatched),
	}
	if s.kv.Usage.OK() {
		p.KVShare = s.kv.Usage.V
	}
	if w := s.rates.slots[sec%rateSlots]; w.second == sec {
		p.Generated = w.generatedTokens
		p.Prefill, p.Decode = busyRate(w.promptTokens, w.promptBusy).V, busyRate(w.decodeTokens, w.decodeBusy).V
	}
	if s.aggregates != nil {
		s.aggregates.fillPoint(&p)
	}
	s.rates.points = push(s.rates.points, p, SeriesLen)
	l := LatencyPoint{At: at}
	if sum := s.latency.of[ITL].At(sec); sum.Count > 0 {
		l.Count, l.P50, l.P99, l.Spread = sum.Count, sum.P50, sum.P99, s.latency.spreads.take(sec)
	}
	if l.Count > 0 || len(s.latency.series) > 0 { // no series for engines that report no tokens
		s.latency.series = push(s.latency.series, l, SeriesLen)
	}
	s.version++
}

// viewRequests sets the requests and counts of a snapshot.
func (s *state) viewRequests(v *Snapshot) {
	b := &s.requests.overflow
	v.Counts = s.counts
	v.Counts.UnmeasuredOpen, v.Counts.Queued, v.Counts.Running = b.openCount(), b.count(event.StateQueued), b.count(event.StateDispatched)
	if settings := (viewSettings{s.engine.Caps, s.loadTook}); s.requests.viewedWith != settings {
		s.requests.viewedWith = settings
		for l := range s.requests.newestFirst() {
			l.lastView = nil
		}
	}
	v.Requests = make([]*Request, 0, len(s.requests.byID))
	for l := range s.requests.newestFirst() {
		r := s.view(l)
		switch {
		case s.excluded(l):
		case r.State == event.StateQueued:
			v.Counts.Queued++
		case r.State == event.StateDispatched:
			v.Counts.Running++
			if v.Current == nil || v.Current.State.Final() {
				v.Current = r
			}
		default:
			if v.Current == nil {
				v.Current = r
			}
		}
		v.Requests = append(v.Requests, r)
	}
	v.Past = slices.Clip(s.requests.past)
	for name, g := range s.groups {
		tps := event.Absent(event.NotYet)
		if g.latency > 0 {
			tps = event.DerivedValue(float64(g.generated) / g.latency)
		}
		v.Counts.Groups = append(v.Counts.Groups, Group{Name: name, Requests: g.requests, Generated: g.generated, TPS: tps})
	}
	slices.SortFunc(v.Counts.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

// view returns the view of a request. Snapshots share it until an event changes the request.
func (s *state) view(l *liveRequest) *Request {
	switch {
	case l.done != nil:
		return l.done
	case l.lastView == nil:
		s.measure(l)
		l.lastView = l.copy()
	}
	return l.lastView
}

// viewLatency sets the latency of a snapshot.
func (s *state) viewLatency(v *Snapshot) {
	now, l := int64(v.Now), &v.Latency
	for id := range Latencies {
		*Latencies[id].In(l) = s.latency.of[id].Summaries(now)
	}
	l.Session = SessionDistributions{s.latency.of[TTFT].Whole(), s.latency.of[ITL].Whole(), s.latency.of[TPOT].Whole()}
	for w, sum := range s.latency.stallCount.Summaries(now) {
		l.StallCount[w] = sum.Count
	}
	l.Series, l.Stalls, l.Targets = slices.Clip(s.latency.series), slices.Clip(s.latency.stalls), s.targets
	l.Goodput = event.Absent(event.NotYet)
	if s.counts.Finished > 0 {
		span := min(time.Duration(v.Now-s.started), time.Minute).Seconds()
		if span > 0 {
			l.Goodput = event.DerivedValue(float64(s.latency.met.Summaries(now)[metric.Minute].Count) / span)
		}
	}
}

// stepRates returns what forward passes show: decode tokens/s; the share of span, in s, in which a pass ran; and the
// bytes/s that decoding reads: per pass the weights that one token needs and the used KV cache.
func (s *state) stepRates(recent *secondWork, span float64) (decode, busy, bandwidth event.Reading) {
	if !s.engine.Caps.Has(event.CapSteps) {
		absent := event.Absent(event.NotReported)
		return absent, absent, absent
	}
	decode, busy, bandwidth = busyRate(recent.decodeTokens, recent.decodeBusy), event.Absent(event.NotYet), event.Absent(event.NotReported)
	if s.counts.Steps > 0 && span > 0 {
		busy = event.DerivedValue(min(float64(recent.busy)/(span*second), 1))
	}
	if m := &s.model; m.WeightBytes > 0 {
		bandwidth = busyRate(recent.decodePasses, recent.decodeBusy)
		bandwidth.V *= float64(m.WeightBytes) + float64(m.KVBytes)*float64(s.kv.Used)
	}
	return decode, busy, bandwidth
}

// viewRates sets the throughput of a snapshot.
func (s *state) viewRates(v *Snapshot) {
	t := &v.Throughput
	recent := s.rates.sum(v.Now, 10)
	t.Prefill = busyRate(recent.promptTokens, recent.promptBusy)
	t.TTPS, t.SessionTTPS = event.Absent(event.NotYet), event.Absent(event.NotYet)
	// The window starts at a whole second, or with the session.
	window := event.Time((int64(v.Now)/int64(second) - 9) * int64(second))
	span := float64(v.Now-max(s.started, window)) / second
	if s.counts.GeneratedTokens > 0 && span > 0 {
		t.TTPS = event.DerivedValue(float64(recent.generatedTokens) / span)
		t.SessionTTPS = event.DerivedValue(float64(s.counts.GeneratedTokens) / (float64(v.Now-s.started) / second))
	}
	t.Decode, t.BusyShare, t.Bandwidth = s.stepRates(&recent, span)
	t.Running, t.Queued, t.Slots = v.Counts.Running, v.Counts.Queued, s.engine.Slots
	if s.aggregates != nil {
		s.aggregates.fillThroughput(t)
	}
	t.CopyBandwidth = s.host.CopyBandwidth
	t.Series = slices.Clip(s.rates.points)
}
