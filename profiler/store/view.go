package store

import (
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
	st := &s.state
	if s.last != nil && s.last.Version == st.version && now-s.last.Now < event.Time(keepFor) {
		return s.last
	}
	st.advance(now)
	v := &Snapshot{
		Version: st.version, Now: now, Wall: s.opt.Wall(), Started: st.started,
		Engine: st.engine, Model: st.model, Load: st.load,
		Host: st.host, Log: slices.Clone(st.log), Lost: st.lost, KV: st.kv,
	}
	for k, n := range st.dropped {
		v.Lost[k] += n
	}
	v.Host.Series = slices.Clone(st.host.Series)
	v.KV.Residency = st.pins.Summary()
	st.viewRequests(v)
	st.viewLatency(v)
	st.viewRates(v)
	if st.experts != nil {
		v.Experts = st.experts.view(now)
	}
	v.Verdicts = st.judge.Judge(v.evidence())
	s.last = v
	return v
}

// advance closes the seconds that are over.
func (s *state) advance(now event.Time) {
	last := int64(now)/int64(second) - 1
	from := max(last, 0)
	if n := len(s.rates.points); n > 0 {
		from = max(int64(s.rates.points[n-1].At)/int64(second)+1, last-SeriesLen)
	}
	for sec := from; sec <= last; sec++ {
		s.close(sec)
	}
}

// close appends the points of a second that is over to the series.
func (s *state) close(sec int64) {
	at := event.Time(sec * int64(second))
	p := RatePoint{At: at, KVUsed: int(s.kv.Used)}
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
	s.rates.points = push(s.rates.points, p, SeriesLen)
	l := LatencyPoint{At: at}
	if sum := s.latency.itl.Last(int64(at) + int64(second)); sum.Count > 0 {
		l.Count, l.P50, l.P99 = sum.Count, sum.P50, sum.P99
	}
	s.latency.series = push(s.latency.series, l, SeriesLen)
	s.version++
}

func (s *state) viewRequests(v *Snapshot) {
	v.Counts = s.counts
	for _, l := range slices.Backward(s.requests.list) {
		r := l.done
		if r == nil {
			s.measure(l, v.Now)
			r = l.copy()
		}
		switch r.State {
		case event.StateQueued:
			v.Counts.Queued++
		case event.StateDispatched:
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
	for w, sum := range s.latency.stallCount.Summaries(now) {
		l.StallCount[w] = sum.Count
	}
	l.Series, l.Stalls, l.Target = slices.Clone(s.latency.series), slices.Clone(s.latency.stalls), s.target
	l.Goodput = event.Absent(event.NotYet)
	if s.counts.Finished > 0 {
		span := min(time.Duration(v.Now-s.started), time.Minute).Seconds()
		if span > 0 {
			l.Goodput = event.From(float64(s.latency.met.Summaries(now)[metric.Minute].Count) / span)
		}
	}
}

func (s *state) viewRates(v *Snapshot) {
	t := &v.Throughput
	recent := s.rates.sum(v.Now, 10)
	span := min(float64(v.Now-s.started)/float64(second), 10)
	t.Prefill, t.Decode = per(recent.prompt, recent.promptBusy), per(recent.decodeSum, recent.decodeNow)
	t.TTPS, t.SessionTTPS, t.BusyShare = event.Absent(event.NotYet), event.Absent(event.NotYet), event.Absent(event.NotYet)
	if span >= 1 {
		t.TTPS = event.From(float64(recent.generated) / span)
		t.SessionTTPS = event.From(float64(s.counts.GeneratedTokens) / (float64(v.Now-s.started) / float64(second)))
		if s.engine.Caps.Has(event.CapSteps) {
			t.BusyShare = event.From(min(float64(recent.busy)/(span*float64(second)), 1))
		}
	}
	t.Running, t.Queued, t.Slots = v.Counts.Running, v.Counts.Queued, s.engine.Slots
	t.Bandwidth = event.Absent(event.NotReported)
	if m := &s.model; m.WeightBytes > 0 && t.Decode.OK() {
		perPass := float64(m.WeightBytes) + float64(m.KVBytes)*float64(s.kv.Used)
		passes := t.Decode.V / max(float64(recent.decodeSum)/max(float64(recent.decodePasses), 1), 1)
		t.Bandwidth = event.From(perPass * passes)
	}
	t.CopyBandwidth = s.host.CopyBandwidth
	t.Series = slices.Clone(s.rates.points)
}
