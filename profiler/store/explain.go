package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// explain names the cause of lost time between two times with the evidence that there is.
func (s *state) explain(u *unexplained) verdict.Explanation {
	from, load := u.from, int64(0)
	l := s.requests.byID[u.req]
	if l != nil && u.index == 0 { // in the queue, nothing could slow it
		if load = l.view.LoadTime(); load == 0 {
			from = max(from, s.worked(l, u.to))
		}
	}
	i := s.interval(from, u.to)
	i.Lost, i.Wall, i.Load, i.AbsentExperts = u.lost, int64(u.to-from), load, u.absent
	if l != nil && l.view.Cold && u.index == 0 { // pages that were evicted before the model was loaded
		i.Usage.Reread = event.Absent(event.NotReported)
	}
	if u.index > 0 {
		s.promptEvidence(&i, u)
	} else if l != nil {
		i.OwnPrompt, i.Paced = s.ownPrompt(l), l.stageTime[event.StagePacedByOthers]
		with := s.settings().of(l)
		if wait := l.queueTime(&with, event.Absent(event.NotYet)); wait.OK() {
			i.Queued = nanos(wait)
		}
	}
	return verdict.Explain(&i, s.limits())
}

// worked returns since when the engine worked on a request whose first token came at a moment, as far as that is known. Of
// an engine that reports no queue, it is that moment if other requests ran meanwhile: it may have waited for their slots.
func (s *state) worked(l *liveRequest, first event.Time) event.Time {
	v, caps := &l.view, s.engine.Caps
	if began := v.Began(caps); began != 0 || caps.Has(event.CapQueue) {
		return began
	}
	for o := range s.requests.newestFirst() {
		if w := &o.view; o != l && w.Enqueued < first && (w.Closed == 0 || w.Closed > v.Enqueued) {
			return first
		}
	}
	return 0
}

// ownPrompt returns how long the prompt of a request was processed, in ns, if that is its prompt's doing: other prompts
// took as long, or the engine was warm and no other was processed since; otherwise 0.
func (s *state) ownPrompt(l *liveRequest) int64 {
	if !l.view.Prefill.OK() {
		return 0
	}
	ns, prompts := nanos(l.view.Prefill), &s.causes.totals().prompts
	warm := prompts.whole == 0 && slices.ContainsFunc(s.load, func(p StageSpan) bool { return p.Stage == event.StageLoadWarmup })
	if warm || prompts.accounts(ns, cmp.Or(l.view.Computed, l.view.PromptTokens)) {
		return ns
	}
	return 0
}

// promptEvidence adds for how long prompts of other requests were processed meanwhile, and whose. A source that reports
// neither forward passes nor dispatches, such as a proxy, shows only who waited for a first token: that counts if one
// request did for at least half of the time.
func (s *state) promptEvidence(i *verdict.Interval, u *unexplained) {
	i.Prompt = s.causes.promptTime(u.req, u.from, u.to)
	passes := s.engine.Caps.Has(event.CapSteps)
	if i.Prompt == 0 && passes {
		return
	}
	o, took := s.longestPrefill(u.req, u.from, u.to)
	switch {
	case o == nil:
	case i.Prompt > 0:
		i.PromptOf = o.view.ID
	case took >= time.Duration(u.to-u.from)/2:
		i.Prompt, i.PromptOf, i.PromptAwaited = int64(took), o.view.ID, true
	}
}

// longestPrefill returns the request other than req whose prompt may have been processed for the longest part of the time
// between two times, and that part; nil without such a request.
func (s *state) longestPrefill(req event.RequestID, from, to event.Time) (longest *liveRequest, took time.Duration) {
	checked := 0
	for o := range s.requests.newestFirst() {
		if n := o.prefilling(from, to, s.engine.Caps); o.view.ID != req && n > took {
			longest, took = o, n
		}
		if checked++; checked == MaxRequests { // with thousands of requests, checking all is too slow
			break
		}
	}
	return longest, took
}

// limits returns the limits of verdicts.
func (s *state) limits() *verdict.Limits {
	if s.judge.Limits == nil {
		d := verdict.Defaults()
		s.judge.Limits = &d
	}
	return s.judge.Limits
}

// promptTime returns for how long prompts of other requests were processed, in ns.
func (c *causes) promptTime(req event.RequestID, from, to event.Time) (ns int64) {
	for i := len(c.passes) - 1; i >= 0 && c.passes[i].to > from; i-- {
		if p := &c.passes[i]; p.req == 0 || p.req != req {
			ns = event.Add(ns, max(int64(min(p.to, to)-max(p.from, from)), 0))
		}
	}
	return min(ns, int64(to-from))
}

// interval returns the evidence for the time between two times: samples of the engine's threads that overlap it, or else
// those of the machine.
func (s *state) interval(from, to event.Time) verdict.Interval {
	i := verdict.Interval{Coarse: true, Threads: float64(s.engine.Device.Threads), ReadTotal: s.causes.read, ModelBytes: float64(s.model.Bytes)}
	if s.causes.sampled() { // hundreds of polled servers are not
		i = s.sampled(i, from, to)
	}
	return i
}

// sampled returns i with the samples between two times.
func (s *state) sampled(i verdict.Interval, from, to event.Time) verdict.Interval {
	c := &s.causes
	for k := len(c.usage) - 1; k >= 0 && c.usage[k].to > from; k-- {
		if u := &c.usage[k]; u.from < to {
			i.Span = event.Add(i.Span, u.of.Interval)
			i.Usage.Add(u.of)
		}
	}
	i.Coarse = i.Span == 0
	for k := len(c.hosts) - 1; k >= 0 && c.hosts[k].to > from; k-- {
		h := &c.hosts[k]
		if h.from >= to {
			continue
		}
		s.addHost(&i, h)
	}
	return i
}

// addHost adds a sample of the machine. What it says of the engine counts only if there are no finer samples.
func (s *state) addHost(i *verdict.Interval, h *sample[event.Host]) {
	p, e := h.of, &h.of.Engine
	ns, cores := float64(p.Interval), float64(len(p.Cores))
	over := func(r event.Reading, factor float64) event.Reading {
		if r.OK() {
			r = event.DerivedValue(r.V * factor)
		}
		return r
	}
	add := func(sum *event.Reading, r event.Reading) {
		if r.OK() {
			*sum = event.DerivedValue(sum.V + max(r.V, 0))
		}
	}
	if p.CPU.OK() && e.CPU.OK() && cores > 0 {
		add(&i.Others, event.DerivedValue(max((p.CPU.V-max(p.Steal.V, 0))*cores-e.CPU.V, 0)*ns))
		i.OthersSpan = event.Add(i.OthersSpan, p.Interval)
	}
	add(&i.Stolen, over(p.Steal, ns))
	if clock := busyClock(p); clock.OK() && (!i.Clock.OK() || clock.V < i.Clock.V) {
		i.Clock = clock
	}
	s.addGPUs(i, p)
	if !i.Coarse {
		return
	}
	i.Span = event.Add(i.Span, p.Interval)
	available := e.Cores
	if !available.OK() && cores > 0 {
		available = event.DerivedValue(cores)
	}
	u := event.Usage{
		Running: over(e.CPU, ns), Waiting: over(e.RunWait, ns), Cores: available, Faults: over(e.Faults, ns/second), Read: over(e.Read, ns/second),
		Throttled: over(p.Throttled, ns), MemoryStall: over(p.MemPressure, ns),
	}
	if s.engine.Device.Threads > 0 {
		u.Threads = event.ReportedValue(float64(s.engine.Device.Threads))
	}
	if e.PID == p.Self.PID {
		u.GCPause = p.Self.GCPause
	}
	i.Usage.Add(&u)
}

// addGPUs adds a sample of the GPUs on which the engine has memory.
func (s *state) addGPUs(i *verdict.Interval, p *event.Host) {
	var worst verdict.GPUTime
	part := func(share float64) int64 { return int64(min(max(share, 0), 1) * float64(p.Interval)) }
	for k := range p.GPUs {
		g := &p.GPUs[k]
		if !g.EngineMem.OK() || g.EngineMem.V <= 0 {
			continue
		}
		worst.Span = p.Interval
		if g.DRAM.OK() {
			worst.Measured = true
			if dram := part(g.DRAM.V); dram >= worst.DRAM {
				worst.DRAM, worst.Bandwidth = dram, max(g.MemBandwidth.V, 0)
			}
		}
		const saturated = 0.9
		if g.EngineUtil.OK() && g.OthersUtil.OK() && g.EngineUtil.V+g.OthersUtil.V >= saturated {
			worst.Others = max(worst.Others, part(g.OthersUtil.V))
		}
		if !g.Clock.OK() || !g.MaxClock.OK() || g.MaxClock.V <= 0 || g.DRAM.OK() && g.DRAM.V >= s.limits().MemoryBound {
			continue
		}
		slower := part(1 - g.Clock.V/g.MaxClock.V)
		switch {
		case g.ThermallySlowed.OK() && g.ThermallySlowed.V > 0:
			worst.Hot = max(worst.Hot, slower)
		case g.PowerCapped.OK() && g.PowerCapped.V > 0:
			worst.Capped = max(worst.Capped, slower)
		}
	}
	e := &p.Engine
	if e.LaunchGap.OK() {
		worst.Span, worst.Gaps, worst.Graphs = p.Interval, part(e.LaunchGap.V), e.Graphs.V > 0
	}
	if e.Copying.OK() {
		worst.Span, worst.Copies = p.Interval, part(e.Copying.V)
	}
	sum := &i.GPU
	sum.Span, sum.Capped, sum.Hot = event.Add(sum.Span, worst.Span), event.Add(sum.Capped, worst.Capped), event.Add(sum.Hot, worst.Hot)
	sum.Others, sum.Gaps, sum.DRAM = event.Add(sum.Others, worst.Others), event.Add(sum.Gaps, worst.Gaps), event.Add(sum.DRAM, worst.DRAM)
	sum.Copies, sum.HostExperts = event.Add(sum.Copies, worst.Copies), s.engine.Device.HostExperts
	sum.Graphs, sum.Measured = sum.Graphs || worst.Graphs, sum.Measured || worst.Measured
	sum.Bandwidth = max(sum.Bandwidth, worst.Bandwidth)
}

// gpuReads sets what decoding reads of the memory of the GPUs, if that holds all weights, and their bandwidth in all: of
// GPUs that compute one after another, the share is then too low, and names no cause.
func (s *state) gpuReads(g *verdict.GPUTime, w *secondWork) {
	h, held, all := s.machine.last(), 0., 0.
	for i := range h.GPUs {
		if u := &h.GPUs[i]; u.EngineMem.OK() && u.EngineMem.V > 0 {
			if !u.MemBandwidth.OK() || u.DRAM.OK() {
				return
			}
			held, all = held+u.EngineMem.V, all+u.MemBandwidth.V
		}
	}
	if rate := s.readRate(w); !s.engine.Device.Host && rate.OK() && held >= float64(s.model.WeightBytes) {
		g.Reads, g.Bandwidth = rate.V, all
	}
}

// busyClock returns the frequency of the cores, weighted by their use, as a share of the highest.
func busyClock(p *event.Host) event.Reading {
	if !p.MaxClock.OK() || p.MaxClock.V <= 0 || len(p.Clocks) == 0 || len(p.Clocks) != len(p.Cores) {
		return event.Absent(event.NotReported)
	}
	var clock, use float64
	for i, share := range p.Cores {
		clock, use = clock+share*p.Clocks[i], use+share
	}
	if use < 0.1 { // idle cores are slow on purpose
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(min(clock/use/p.MaxClock.V, 1))
}

// explainLater explains lost time with the evidence so far, counts it, and again when more has arrived.
func (s *state) explainLater(l *liveRequest, u unexplained) verdict.Explanation {
	u.given = s.explain(&u)
	if !s.excluded(l) {
		s.causes.count(u.to, &u.given, 1, u.of())
		s.causes.late = push(s.causes.late, promptPass{u.from, u.to, u.req}, maxLate)
	}
	if len(s.causes.pending) >= maxPending {
		s.causes.pending = s.causes.pending[1:]
	}
	s.causes.pending = append(s.causes.pending, u)
	return u.given
}

// explainPending explains again what ended between two times, after a sample, until both kinds of samples have covered it.
func (s *state) explainPending(from, at event.Time) {
	c := &s.causes
	cloned := map[*Request]bool{}
	kept := make([]unexplained, 0, len(c.pending))
	for _, u := range c.pending {
		if at-u.to > evidenceDelay {
			continue
		}
		if from < u.to && u.to <= at {
			if x := s.explain(&u); x != u.given {
				l := s.requests.byID[u.req]
				if l != nil && !s.excluded(l) {
					c.count(u.to, &u.given, -1, u.of())
					c.count(u.to, &x, 1, u.of())
				}
				s.replaceCause(l, &u, &x, cloned)
				u.given = x
			}
		}
		if !reach(c.hosts, u.to) || !reach(c.usage, u.to) { // an engine without usage keeps them for evidenceDelay
			kept = append(kept, u)
		}
	}
	c.pending = kept
}

// reach reports whether the samples reach a time.
func reach[T any](list []sample[T], t event.Time) bool {
	n := len(list)
	return n > 0 && list[n-1].to >= t
}

// replaceCause replaces the explanation of a stall or a first token. Snapshots share the old lists, so that it replaces
// copies. cloned has the requests whose list is a copy already.
func (s *state) replaceCause(l *liveRequest, u *unexplained, x *verdict.Explanation, cloned map[*Request]bool) {
	replace := func(list []Stall, key *Request) []Stall {
		i := slices.IndexFunc(list, func(st Stall) bool { return st.Request == u.req && st.Index == u.index && st.At == u.to })
		if i < 0 {
			return list
		}
		if !cloned[key] {
			list, cloned[key] = slices.Clone(list), true
		}
		list[i].Explanation = x
		return list
	}
	s.latency.stalls = replace(s.latency.stalls, nil)
	if l == nil {
		return
	}
	v := &l.view
	if l.done != nil && !cloned[l.done] {
		done := *l.done
		l.done = &done
		cloned[l.done] = true
		done.Stalls = slices.Clone(done.Stalls)
		l.done.Stalls = done.Stalls
	}
	if l.done != nil {
		v = l.done
	} else {
		l.lastView = nil
	}
	if u.index == 0 {
		v.Slow = x
		return
	}
	v.Stalls = replace(v.Stalls, v)
}

// judgeSecond explains what a second without its stalls lost, if it was slow: its requests were slower than the limit or
// the session before it, prompts of others were processed, or the engine's threads could not run for much of it. Of a
// polled server, which reports no tokens, only the latter is known: it was lost to all requests that ran.
func (s *state) judgeSecond(sec int64) (x verdict.Explanation, slow bool) {
	c := &s.causes
	at, ok := c.find(sec)
	if !ok {
		return x, false
	}
	w := &c.seconds[at]
	traced := w.gapCount > 0
	took := w.gaps
	if !traced {
		took = w.served
	}
	if took <= 0 {
		return x, false
	}
	from := event.Time(sec * int64(second))
	i := c.withoutLate(s.interval(from, from+event.Time(second)), from)
	limits := s.limits()
	share := 0.
	if traced {
		share = s.slowdown(sec, float64(w.gaps)/float64(w.gapCount), limits)
	}
	span := i.Span
	if i.Wall = span; span > 0 {
		share = max(share, float64(i.MeasuredLoss(limits))/float64(span))
	} else {
		span = int64(second)
	}
	prompts := float64(w.prompt) / float64(took)
	if share = max(share, prompts); share < limits.Lost {
		return x, false
	}
	i.Prompt = int64(prompts * float64(span))
	i.Lost = int64(share * float64(span))
	i.Coarse, i.Whole = false, true // the samples are about this second
	i.Wall = span
	if t := &s.rates.slots[sec%rateSlots]; t.second == sec && sized(s) {
		i.Bandwidth = shareOf(s.readRate(t), s.readBandwidth())
		s.gpuReads(&i.GPU, t)
	}
	x = verdict.Explain(&i, limits)
	x.Lost, x.Explains = int64(share*float64(took)), int64(float64(took)*share*metric.Share(float64(x.Explains), float64(x.Lost)))
	return x, true
}

// withoutLate returns the evidence for a second without the samples of its stalls and slow first tokens, which show the
// causes of these; with them if there are no others.
func (c *causes) withoutLate(i verdict.Interval, from event.Time) verdict.Interval {
	rest := i
	rest.Span, rest.Usage = 0, event.Usage{}
	for k := len(c.usage) - 1; k >= 0 && c.usage[k].to > from; k-- {
		u := &c.usage[k]
		late := slices.ContainsFunc(c.late, func(l promptPass) bool { return l.from < u.to && u.from < l.to })
		if u.from < from+event.Time(second) && !late {
			rest.Span = event.Add(rest.Span, u.of.Interval)
			rest.Usage.Add(u.of)
		}
	}
	if rest.Span == 0 {
		return i
	}
	return rest
}

// slowdown returns the share of a second's decoding that is more than its requests should take: by the target for TPOT,
// else reading speed, or by the session before it.
func (s *state) slowdown(sec int64, gap float64, l *verdict.Limits) float64 {
	most := second / l.Comfortable
	if t := s.targets.TPOT; t > 0 {
		most = float64(t)
	}
	return max(0, 1-most/gap, s.slower(sec, l))
}

// The seconds that are compared to find out whether the last ones are slower than the session before them.
const (
	recentSeconds, minRecent   = 10, 8
	typicalSeconds, minTypical = 120, 20
	similarKV                  = 2 // times as many cells in use: longer contexts take longer
)

// slower returns the share by which the last ten seconds are slower than the session was with as many requests and about
// as much in the KV cache; 0 if that is not significant.
func (s *state) slower(sec int64, l *verdict.Limits) float64 {
	series := s.latency.series
	if len(series) == 0 {
		return 0
	}
	now := &series[len(series)-1]
	var recent, typical []float64
	for k := len(series) - 1; k >= 0; k-- {
		p, age := &series[k], sec-int64(series[k].At)/int64(second)
		switch {
		case p.Count == 0 || age < 0 || p.Running != now.Running:
		case age < recentSeconds:
			recent = append(recent, float64(p.P50))
		case age < typicalSeconds && p.KVUsed*similarKV >= now.KVUsed:
			typical = append(typical, float64(p.P50))
		}
		if age >= typicalSeconds {
			break
		}
	}
	if len(recent) < minRecent || len(typical) < minTypical {
		return 0
	}
	slices.Sort(recent)
	slices.Sort(typical)
	// Significant: nearly all of the recent seconds are slower than nearly all of the others.
	low, high := recent[len(recent)/10], typical[len(typical)*9/10]
	if low < high*(1+l.Slower) {
		return 0
	}
	return 1 - typical[len(typical)/2]/recent[len(recent)/2]
}
