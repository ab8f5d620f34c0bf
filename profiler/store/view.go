package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// Snapshot applies queued events and returns the current state. It returns the previous snapshot if nothing has
// changed. It may be called from any goroutine, for example 30 times a second.
func (s *Store) Snapshot() *Snapshot {
	s.Drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.lastSnapshot == nil || s.lastSnapshot.Version != s.state.version || now-s.lastSnapshot.Now >= event.Time(snapshotMaxAge) {
		s.lastSnapshot = s.state.snapshot(now, s.opt.Wall())
	}
	return s.lastSnapshot
}

// snapshot returns the state at the given time.
func (s *state) snapshot(now event.Time, wall time.Time) *Snapshot {
	s.closeSeconds(now)
	v, judge := s.measure(now, wall, s.view), s.judge.Clone()
	s.conclude(v, &judge)
	return v
}

// conclude adds verdicts, and what is shown of an idle engine.
func (s *state) conclude(v *Snapshot, judge *verdict.Judge) {
	v.Verdicts = judge.Judge(v.evidence())
	v.Health = verdict.HealthOf(v.Verdicts, v.Now, v.untargeted())
	if s.engine.Remote.Link.Down() || !s.rates.ran(secondOf(v.Now)) { // nor in the second that has not ended
		v.LastActive = lastActive(s.active, v)
	}
}

// measure returns the state at the given time, without verdicts, and with a view of each request.
func (s *state) measure(now event.Time, wall time.Time, view func(*liveRequest) *Request) *Snapshot {
	v := &Snapshot{
		Version: s.version, Now: now, Wall: wall, Started: s.started,
		Engine: *s.engine, Model: s.model, Load: s.load,
		Host: s.machine.view(), Log: slices.Clip(s.log), Drops: s.sourceDrops, KV: s.kv.view(kvNow(s)), Ops: s.ops, Speculation: s.speculation, Counters: s.counters,
	}
	if v.Engine.Device.Name == "" { // engines seldom report it
		v.Engine.Device.Name = s.machine.last().EngineDevice()
	}
	for k, n := range s.queueDrops {
		v.Drops[k] += n
	}
	s.viewRequests(v, view)
	v.Latency.Targets = s.targets
	s.latency.view(&v.Latency, int64(now), time.Duration(now-s.started))
	s.viewRates(v)
	s.routing.view(v)
	v.Aggregates = s.aggregates.view(now)
	v.Losses, v.Recent = s.viewLosses(now), s.causes.recent
	if g := v.Latency.Goodput; !s.targets.Any() || !g.OK() && v.Engine.Caps != 0 && !v.Engine.Caps.Has(event.CapTokens) {
		v.Latency.Goodput = event.Absent(event.NotReported)
	}
	return v
}

// closeSeconds closes the seconds that have ended, starting with that of the first event.
func (s *state) closeSeconds(now event.Time) {
	if !s.hasEvents {
		return
	}
	last := int64(now)/int64(second) - 1
	from := int64(s.started) / int64(second)
	if p := s.rates.trend.Last(); p != nil {
		from = int64(p.At)/int64(second) + 1
	}
	for sec := max(from, last-SeriesLen+1); sec <= last; sec++ {
		s.closeSecond(sec)
		end := event.Time((sec + 1) * int64(second))
		if s.past.due(sec + 1) {
			v := s.measure(end, s.past.wall(end), s.view)
			s.keepActive(v, sec)
			s.conclude(v, &s.judge)
			s.past.keep(v)
			continue
		}
		// Verdicts hold for some seconds and say since when: they are judged in each second, whoever looks.
		v := s.measure(end, time.Time{}, s.glance)
		s.judge.Check(v.evidence())
		s.keepActive(v, sec)
	}
	s.latency.advance(now)
}

// keepActive keeps the windows of the snapshot at the end of a second in which something ran.
func (s *state) keepActive(v *Snapshot, sec int64) {
	if !s.engine.Remote.Link.Down() && (s.rates.ran(sec) || s.rates.trend.Last().active()) {
		s.active = windowsOf(v)
	}
}

// closeSecond appends the points of an ended second to the series.
func (s *state) closeSecond(sec int64) {
	countBusy(s, event.Time((sec+1)*int64(second)))
	running, queued, anyQueued := occupancy(s)
	if anyQueued {
		queued = -1
	}
	p := RatePoint{
		At: event.Time(sec * int64(second)), KVUsed: int(kvNow(s).Used), KVShare: orNaN(s.kv.Usage),
		Queued: queued, Running: running,
		CacheHits: noValue, Accepted: noValue, Preempted: noValue, RankImbalance: noValue, ReadShare: noValue,
	}
	if w := s.rates.slots[sec%rateSlots]; w.second == sec {
		p.Generated = w.generatedTokens
		p.Prefill, p.Decode = busyRate(w.promptTokens, w.promptBusy).V, busyRate(w.decodeTokens, w.decodeBusy).V
		p.ReadShare = float32(orNaN(shareOf(s.readRate(&w), s.readBandwidth())))
	}
	s.aggregates.fillPoint(&p)
	s.rates.trend = s.rates.trend.with(p)
	s.latency.closeSecond(sec, &p)
	s.serve(sec - 1)
	if x, slow := judgeSecond(s, sec-1); slow { // the evidence of the last second may be on its way
		s.causes.count(event.Time((sec-1)*int64(second)), &x, 1, ofSecond)
	}
	s.causes.next = sec
	end := event.Time((sec + 1) * int64(second))
	if recent := interval(s, end-evidenceDelay, end); s.causes.recent == nil || *s.causes.recent != recent {
		s.causes.recent = new(recent)
	}
	s.version++
}

// viewRequests sets the requests and counts of a snapshot.
func (s *state) viewRequests(v *Snapshot, view func(*liveRequest) *Request) {
	b := &s.requests.overflow
	v.Counts = s.counts.view()
	v.Counts.UnmeasuredOpen, v.Counts.Queued, v.Counts.Running = b.openCount(), b.count(event.StateQueued), b.count(event.StateDispatched)
	if with := s.settings(); s.requests.viewedWith != with {
		s.requests.viewedWith = with
		for l := range s.requests.newestFirst() {
			l.lastView = nil
		}
	}
	v.Requests = make([]*Request, 0, len(s.requests.byID))
	for l := range s.requests.newestFirst() {
		r := view(l)
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
	if v.Counts.Derived = derivesQueue(s); v.Counts.Derived {
		v.Counts.Running, v.Counts.Queued, v.Counts.AnyQueued = occupancy(s)
	}
	v.Earlier = slices.Clip(s.requests.earlier)
}

// view returns the view of a request. Snapshots share it until an event changes the request.
func (s *state) view(l *liveRequest) *Request {
	switch {
	case l.done != nil:
		return l.done
	case l.lastView == nil:
		l.measure(s.settings())
		l.lastView = l.copy()
	}
	return l.lastView
}

// glance is view for a snapshot that is dropped before the next event: it has no tokens and no text, and nothing is copied.
func (s *state) glance(l *liveRequest) *Request {
	if l.done != nil {
		return l.done
	}
	if l.lastView == nil {
		l.measure(s.settings())
	}
	return &l.view
}

// stepRates returns what forward passes show: decode tokens/s; the share of span, in s, in which a pass ran; and the
// bytes/s that decoding reads.
func (s *state) stepRates(recent *secondWork, span float64) (decode, busy, bandwidth event.Reading) {
	decode, busy, bandwidth = busyRate(recent.decodeTokens, recent.decodeBusy), event.Absent(event.NotYet), event.Absent(event.NotReported)
	derived := derivesPasses(s)
	if !derived && !s.engine.Caps.Has(event.CapSteps) {
		return bandwidth, bandwidth, bandwidth
	}
	switch {
	case derived && !reportsItself(s.engine):
		busy = event.Absent(event.NotReported)
	case (s.counts.Steps > 0 || derived && s.requests.first != nil) && span > 0:
		busy = event.DerivedValue(min(float64(recent.busy)/(span*second), 1))
	}
	if sized(s) {
		bandwidth = s.readRate(recent)
	}
	return decode, busy, bandwidth
}

// readRate returns the bytes/s that decoding read: the weights that each pass needs and the used KV cache.
func (s *state) readRate(w *secondWork) event.Reading {
	r := busyRate(w.decodePasses, w.decodeBusy)
	_, bytes := readsOf(s, w)
	r.V *= bytes
	return r
}

// readBandwidth returns the B/s that as many threads as the engine has read from memory. Where the engine does not say that
// it computes on the host, that limits nothing.
func (s *state) readBandwidth() event.Reading {
	if !s.engine.Device.Host {
		return event.Absent(event.NotReported)
	}
	return s.machine.last().ReadWith(s.engine.Device.Threads)
}

// shareOf returns n / of; absent as the one of them that is.
func shareOf(n, of event.Reading) event.Reading {
	switch {
	case !n.OK():
		return n
	case !of.OK():
		return of
	}
	return event.DerivedValue(n.V / of.V)
}

// viewRates sets the throughput of a snapshot.
func (s *state) viewRates(v *Snapshot) {
	t := &v.Throughput
	countBusy(s, v.Now)
	recent := s.rates.sum(v.Now, 10)
	t.Prefill = busyRate(recent.promptTokens, recent.promptBusy)
	if timed := event.CapStages | event.CapSteps; !t.Prefill.OK() && s.engine.Caps != 0 && s.engine.Caps&timed == 0 && !reportsItself(s.engine) {
		t.Prefill = event.Absent(event.NotReported)
	}
	t.TTPS, t.SessionTTPS = event.Absent(event.NotYet), event.Absent(event.NotYet)
	// The window starts at a whole second, or with the session.
	window := event.Time((int64(v.Now)/int64(second) - 9) * int64(second))
	span := float64(v.Now-max(s.started, window)) / second
	wall := span
	if recent.covered > 0 { // a report covers the time before it, which the window does not cut
		wall = float64(recent.covered) / second
	}
	if s.counts.GeneratedTokens > 0 && span > 0 {
		t.TTPS = event.DerivedValue(float64(recent.generatedTokens) / wall)
		whole := int64(v.Now - s.started)
		if s.counts.Covered > 0 {
			whole = s.counts.Covered
		}
		t.SessionTTPS = event.DerivedValue(float64(s.counts.GeneratedTokens) / (float64(whole) / second))
	}
	t.Requests = event.Absent(event.NotYet)
	if s.counts.Finished > 0 && span > 0 {
		t.Requests = event.DerivedValue(float64(recent.finished) / wall)
	}
	t.Decode, t.BusyShare, t.Bandwidth = s.stepRates(&recent, span)
	if t.Derived = derivesPasses(s); !t.Derived {
		for _, r := range []*event.Reading{&t.Prefill, &t.Decode, &t.BusyShare} {
			if r.OK() {
				r.Origin = event.Measured
			}
		}
	}
	t.PassExperts, _ = readsOf(s, &recent)
	t.Calls = recent.calls.rates()
	t.Running, t.Queued, t.Slots = v.Counts.Running, v.Counts.Queued, s.engine.Slots
	s.aggregates.fillThroughput(t, seesAll(s.engine))
	t.ReadBandwidth = s.readBandwidth()
	t.ReadShare = shareOf(t.Bandwidth, t.ReadBandwidth)
	t.Series = s.rates.trend
}

// LossView is what a snapshot shows of lost time. It is immutable.
type LossView struct {
	Windows [metric.NumWindows]verdict.Losses
	Decode  [metric.NumWindows]verdict.Losses      // of Windows, those of decoding
	Stalls  [metric.NumWindows]verdict.Losses      // of Decode, those of stalls
	Worst   [verdict.NumCauses]verdict.Explanation // the largest loss of each cause
}

// viewLosses returns the losses with those of the seconds that are not over; nil if no time of requests was observed.
func (s *state) viewLosses(now event.Time) *LossView {
	c, last := &s.causes, secondOf(now)
	if c.total == nil {
		return nil
	}
	v := &LossView{Worst: c.total.worst}
	for w := range metric.NumWindows {
		if w == metric.Session {
			v.Windows[w], v.Decode[w], v.Stalls[w] = c.total.all, c.total.decode, c.total.stalls
			continue
		}
		span := int64(w.Span() / time.Second)
		for i := range c.seconds {
			if l := &c.seconds[i]; l.second > last-span {
				v.Windows[w].Merge(&l.all)
				v.Decode[w].Merge(&l.decode)
				v.Stalls[w].Merge(&l.stalls)
			}
		}
	}
	for sec := max(c.next, last-lossSeconds+1); sec <= last; sec++ { // not in c: the next events may bring more evidence
		x, slow := judgeSecond(s, sec)
		if !slow {
			continue
		}
		for w := range metric.NumWindows {
			if w == metric.Session || sec > last-int64(w.Span()/time.Second) {
				v.Windows[w].Add(&x, 1)
				v.Decode[w].Add(&x, 1)
			}
		}
		if x.Lost > v.Worst[x.Cause].Lost {
			v.Worst[x.Cause] = x
		}
	}
	return v
}

// Over returns the losses of a window, those of decoding among them, and of these those of stalls.
func (v *LossView) Over(w metric.Window) (all, decode, stalls verdict.Losses) {
	if v == nil {
		return all, decode, stalls
	}
	return v.Windows[w], v.Decode[w], v.Stalls[w]
}

// Rank returns the significant losses of a window, the largest first.
func (v *LossView) Rank(w metric.Window) []verdict.Loss {
	all, _, _ := v.Over(w)
	return all.Rank()
}
