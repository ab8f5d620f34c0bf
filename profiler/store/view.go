package store

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Snapshot is the state of this moment, the same one as before if nothing has changed. It may be called from any goroutine, thirty times a second.
func (s *Store) Snapshot() *Snapshot {
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	if s.last == nil || s.last.Version != s.state.version || now-s.last.Now >= event.Time(keepFor) {
		s.last = s.state.snapshot(now, s.opt.Wall())
	}
	return s.last
}

// snapshot is the state at a moment.
func (st *state) snapshot(now event.Time, wall time.Time) *Snapshot {
	st.advance(now)
	v := &Snapshot{
		Version: st.version, Now: now, Wall: wall, Started: st.started,
		Engine: st.engine, Model: st.model, Load: st.load,
		Host: st.host, Log: slices.Clip(st.log), Lost: st.lost, KV: st.kv, Ops: st.ops, Counters: st.counters,
	}
	for k, n := range st.dropped {
		v.Lost[k] += n
	}
	v.Host.Series = slices.Clip(st.host.Series)
	v.KV.Residency = st.pins.Summary()
	st.viewRequests(v)
	st.viewLatency(v)
	st.viewRates(v)
	if st.experts != nil {
		v.Experts = st.experts.view(now, st.request)
	}
	if st.told != nil {
		v.Picks = st.told.view(now)
	}
	if st.reported != nil {
		v.Reported = st.reported.view(now)
	}
	v.Verdicts = st.judge.Judge(v.evidence())
	return v
}

// advance closes the seconds that are over, from that of the first event on.
func (s *state) advance(now event.Time) {
	if !s.begun {
		return
	}
	last := int64(now)/int64(second) - 1
	from := int64(s.started) / int64(second)
	if n := len(s.rates.points); n > 0 {
		from = int64(s.rates.points[n-1].At)/int64(second) + 1
	}
	for sec := max(from, last-SeriesLen+1); sec <= last; sec++ {
		s.close(sec)
	}
	s.latency.spreads.advance(now)
}

// close appends the points of a second that is over to the series.
func (s *state) close(sec int64) {
	at := event.Time(sec * int64(second))
	p := RatePoint{At: at, KVUsed: int(s.kv.Used), KVShare: math.NaN()}
	if s.kv.Usage.OK() {
		p.KVShare = s.kv.Usage.V
	}
	if w := s.rates.slot[sec%rateSlots]; w.second == sec {
		p.Generated = w.generated
		p.Prefill, p.Decode = per(w.prompt, w.promptBusy).V, per(w.decodeSum, w.decodeNow).V
	}
	for _, l := range s.requests.list {
		switch l.view.State {
		case event.StateQueued:
			p.Queued++
		case event.StateDispatched:
			p.Running++
		}
	}
	if s.reported != nil {
		s.reported.point(&p)
	}
	s.rates.points = push(s.rates.points, p, SeriesLen)
	l := LatencyPoint{At: at}
	if sum := s.latency.itl.At(sec); sum.Count > 0 {
		l.Count, l.P50, l.P99, l.Spread = sum.Count, sum.P50, sum.P99, s.latency.spreads.of(sec)
	}
	if l.Count > 0 || len(s.latency.series) > 0 { // of engines that tell no tokens there is none
		s.latency.series = push(s.latency.series, l, SeriesLen)
	}
	s.version++
}

func (s *state) viewRequests(v *Snapshot) {
	v.Counts = s.counts
	for _, l := range slices.Backward(s.requests.list) {
		r := l.done
		if r == nil {
			s.measure(l)
			r = l.copy()
		}
		switch {
		case s.aside(l):
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
			tps = event.From(float64(g.generated) / g.latency)
		}
		v.Counts.Groups = append(v.Counts.Groups, Group{Name: name, Requests: g.requests, Generated: g.generated, TPS: tps})
	}
	slices.SortFunc(v.Counts.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

func (s *state) viewLatency(v *Snapshot) {
	now, l := int64(v.Now), &v.Latency
	l.TTFT, l.ColdTTFT = s.latency.ttft.Summaries(now), s.latency.cold.Summaries(now)
	l.ITL, l.STIL = s.latency.itl.Summaries(now), s.latency.stil.Summaries(now)
	l.E2EL, l.TPOT = s.latency.e2el.Summaries(now), s.latency.tpot.Summaries(now)
	l.Whole = Whole{s.latency.ttft.Whole(), s.latency.itl.Whole(), s.latency.tpot.Whole()}
	for w, sum := range s.latency.stallCount.Summaries(now) {
		l.StallCount[w] = sum.Count
	}
	l.Series, l.Stalls, l.Targets = slices.Clip(s.latency.series), slices.Clip(s.latency.stalls), s.targets
	l.Goodput = event.Absent(event.NotYet)
	if s.counts.Finished > 0 {
		span := min(time.Duration(v.Now-s.started), time.Minute).Seconds()
		if span > 0 {
			l.Goodput = event.From(float64(s.latency.met.Summaries(now)[metric.Minute].Count) / span)
		}
	}
}

// viewSteps is what forward passes tell: decode tokens/s, the share of span, in s, in which one ran, and the bytes/s that decoding
// touched: the weights once a pass, as many as one token reads, and all of the KV cache in use.
func (s *state) viewSteps(recent *work, span float64) (decode, busy, bandwidth event.Reading) {
	if !s.engine.Caps.Has(event.CapSteps) {
		absent := event.Absent(event.NotReported)
		return absent, absent, absent
	}
	decode, busy, bandwidth = per(recent.decodeSum, recent.decodeNow), event.Absent(event.NotYet), event.Absent(event.NotReported)
	if s.counts.Steps > 0 && span > 0 {
		busy = event.From(min(float64(recent.busy)/(span*second), 1))
	}
	if m := &s.model; m.WeightBytes > 0 {
		bandwidth = per(recent.decodePasses, recent.decodeNow)
		bandwidth.V *= float64(m.WeightBytes) + float64(m.KVBytes)*float64(s.kv.Used)
	}
	return decode, busy, bandwidth
}

func (s *state) viewRates(v *Snapshot) {
	t := &v.Throughput
	recent := s.rates.sum(v.Now, 10)
	t.Prefill = per(recent.prompt, recent.promptBusy)
	t.TTPS, t.SessionTTPS = event.Absent(event.NotYet), event.Absent(event.NotYet)
	// The window begins with a whole second, or with the session.
	window := event.Time((int64(v.Now)/int64(second) - 9) * int64(second))
	span := float64(v.Now-max(s.started, window)) / second
	if s.counts.GeneratedTokens > 0 && span > 0 {
		t.TTPS = event.From(float64(recent.generated) / span)
		t.SessionTTPS = event.From(float64(s.counts.GeneratedTokens) / (float64(v.Now-s.started) / second))
	}
	t.Decode, t.BusyShare, t.Bandwidth = s.viewSteps(&recent, span)
	t.Running, t.Queued, t.Slots = v.Counts.Running, v.Counts.Queued, s.engine.Slots
	if s.reported != nil {
		s.reported.fill(t)
	}
	t.CopyBandwidth = s.host.CopyBandwidth
	t.Series = slices.Clip(s.rates.points)
}
