package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// derived is what the stamps of requests and tokens show of an engine that reports neither forward passes nor its queue
// nor its KV cache.
type derived struct {
	decoding, prompting []modelLoad // times in which it did, see addTime
	busyUntil           event.Time  // up to which the time with a running request is counted
	full                bool        // as many requests as the engine has slots have generated at once

	// What identifies the first request of an engine.
	met      event.Time // when the engine introduced itself
	restarts int
	marks    bool       // the engine says itself which request is cold
	due      bool       // a model was loaded since the last request
	begun    event.Time // when the last request began; 0: none since the engine was met
	counted  event.Time // when the engine's counters were read
}

// maxIntervals bounds the intervals of addTime. Requests that overlap share one: it is reached by none that matters.
const maxIntervals = 64

// addTime returns how many ns of an interval were not in a union of intervals, and adds it. The union has the newest
// intervals, ascending and disjoint.
func addTime(b *[]modelLoad, from, to event.Time) (ns int64) {
	if from >= to {
		return 0
	}
	joined := modelLoad{from, to}
	ns = int64(to - from)
	end := len(*b)
	for end > 0 && (*b)[end-1].from > to { // stamps may run backwards
		end--
	}
	first := end
	for ; first > 0 && (*b)[first-1].to >= from; first-- {
		last := (*b)[first-1]
		ns -= int64(min(last.to, to) - max(last.from, from))
		joined = modelLoad{min(last.from, joined.from), max(last.to, joined.to)}
	}
	list := slices.Replace(*b, first, end, joined)
	if len(list) > maxIntervals {
		list = list[:copy(list, list[maxIntervals/4:])]
	}
	*b = list
	return ns
}

// reportsItself reports whether the engine sends all its requests itself: what else runs in it cannot hold them up.
// A proxy sees those that pass it, and traces may be a sample.
func reportsItself(e *event.EngineInfo) bool {
	return e.Remote.Link != event.LinkNone && e.Provider == "" && e.Caps.Has(event.CapTokens) && !e.Caps.Has(event.CapAggregates)
}

// derivesPasses reports whether throughput is derived from the stamps of tokens: the engine reports no forward passes.
func derivesPasses(s *state) bool {
	return s.engine.Caps.Has(event.CapTokens) && !s.engine.Caps.Has(event.CapSteps) && (!s.aggregates.reported || seesAll(s.engine)) && !s.rates.passes
}

// derivesQueue reports whether the numbers of running and waiting requests are derived: the engine does not report when
// it dispatches.
func derivesQueue(s *state) bool {
	return !s.engine.Caps.Has(event.CapQueue) && reportsItself(s.engine)
}

// foundIdle reports whether a request that begins can begin at once: no other one is open.
func foundIdle(s *state, e *event.Event) bool {
	return e.State == event.StateQueued && e.At != beforeClock && derivesQueue(s) && s.engine.State == event.EngineReady &&
		s.requests.openCount()+s.requests.overflow.openCount() == 1 && s.sourceDrops[event.KindRequest]+s.queueDrops[event.KindRequest] == 0
}

// countBusy counts the time until a moment as busy if a request was running.
func countBusy(s *state, at event.Time) {
	d := &s.derived
	from := max(d.busyUntil, s.started)
	if at <= from {
		return
	}
	d.busyUntil = at
	running := s.requests.count(event.StateDispatched)
	if derivesQueue(s) {
		running += s.requests.count(event.StateQueued) // an engine with open requests works on one of them
	}
	if running > 0 && derivesPasses(s) && reportsItself(s.engine) && s.engine.State == event.EngineReady && !s.engine.Remote.Link.Down() {
		s.rates.addBusy(at, int64(at-from))
	}
}

// deriveDecode counts k tokens that were generated in a time, prompts of other requests in between included.
func deriveDecode(s *state, at event.Time, ns int64, k int) {
	if derivesPasses(s) {
		s.rates.addDecode(at, addTime(&s.derived.decoding, at-event.Time(ns), at), k)
	}
}

// derivePrompt counts the prompt of a request that no stage timed: with its first token if the engine is known to report
// no cached tokens, else at its end.
func derivePrompt(s *state, l *liveRequest) {
	v, c := &l.view, &s.counts
	uncached := c.AnyCached > 0 && c.AnyCached == c.Ends.total()
	if v.First == 0 || l.promptCounted || l.promptShared || l.stageTime[event.StagePrompt] > 0 || !v.Prefill.OK() || !derivesPasses(s) || !uncached && !v.State.Final() {
		return
	}
	n := v.Computed
	if v.AnyCached {
		n = v.PromptTokens
	}
	l.promptCounted = true
	ns := addTime(&s.derived.prompting, v.First-event.Time(nanos(v.Prefill)), v.First)
	s.rates.addPrompt(max(v.First, v.Closed), ns, n)
}

// occupancy returns how many requests run and wait, and whether any of those that wait may run, as it is derived where the
// engine does not report it: those that generate run. Once its slots were all in use, as many run as there are slots for.
func occupancy(s *state) (running, queued int, anyQueued bool) {
	running, queued = s.requests.count(event.StateDispatched), s.requests.count(event.StateQueued)
	if !derivesQueue(s) {
		return running, queued, false
	}
	open, slots := running+queued, s.engine.Slots
	s.derived.full = s.derived.full || slots > 0 && running >= slots
	if s.derived.full {
		running = max(running, min(open, slots))
		return running, open - running, false
	}
	running = max(running, min(open, 1))
	return running, open - running, open > running
}

// derivesKV reports whether the cells in use are derived: the engine reports no KV cache.
func derivesKV(s *state) bool {
	return !s.engine.Caps.Has(event.CapKV) && !s.kv.reported && reportsItself(s.engine)
}

// held returns the prompt and generated tokens of the running requests; known is false if those of one are unknown, whole
// also if there may be more of them.
func held(s *state) (tokens int64, known, whole bool) {
	if running, _, anyQueued := occupancy(s); s.requests.overflow.openCount() > 0 || anyQueued || running > s.requests.count(event.StateDispatched) {
		return 0, false, false // one that is not known may hold cells
	}
	whole = true
	for l := range s.requests.newestFirst() {
		v := &l.view
		if l.done != nil || v.State != event.StateDispatched {
			continue
		}
		if v.PromptTokens == 0 {
			return 0, false, false
		}
		whole = whole && !l.promptStaged
		tokens += int64(v.PromptTokens + v.Generated)
	}
	return tokens, true, whole
}

// deriveResidency records how long an ended request held its part of the KV cache, if it is known when it began, and the
// engine reports no KV cache, or one that held nothing but running requests.
func deriveResidency(s *state, r *Request) {
	c, began := &s.kv, r.Began(s.engine.Caps)
	own := c.reported && !c.frees && !c.others && c.fitted >= began && reportsItself(s.engine)
	if began != 0 && r.First != 0 && (derivesKV(s) || own) {
		s.kv.residency.Record(int64(r.Closed-began), 1)
	}
}

// meet notes an introduction of the engine: of another process, a request has yet to come.
func (d *derived) meet(at event.Time, p *event.EngineInfo) {
	if d.met == 0 || p.Remote.Restarts != d.restarts {
		d.met, d.restarts, d.due, d.begun = at, p.Remote.Restarts, false, 0
	}
	d.due = d.due || p.State == event.EngineLoading
}

// coldLoad makes the first request since a model load that llmtop saw cold: one that has waited for it, or the next.
func coldLoad(s *state, e *event.Event) {
	c := &s.derived
	from := e.At - event.Time(e.Dur)
	if e.At < c.met || e.Dur <= 0 || !reportsItself(s.engine) {
		return
	}
	if c.begun < from {
		c.due = true
		return
	}
	var first *liveRequest
	for l := range s.requests.newestFirst() {
		if v := &l.view; v.Enqueued >= from && !v.Probe {
			first = l
		}
	}
	if first != nil && first.view.First == 0 && first.done == nil && !c.marks && !first.missedStart {
		first.view.Cold, first.foundCold, first.lastView = true, true, nil
	}
}

// findCold reports whether a request is the first one since the model was loaded or the process started, of an engine
// that does not say so. Nothing else shows that than a load that llmtop has seen, or the engine's counters.
func findCold(s *state, e *event.Event, p *event.Request) bool {
	c := &s.derived
	if p != nil && p.Probe {
		return false
	}
	cold := c.due || c.begun == 0 && countersShowNone(s, e.At)
	c.due, c.begun = false, max(c.begun, e.At)
	c.marks = c.marks || p != nil && p.Cold
	return cold && !c.marks && p != nil && !p.ColdLater && !p.Retrospective && e.State == event.StateQueued && e.At != beforeClock && reportsItself(s.engine)
}

// countersShowNone reports whether the engine has counted no request but the one that was enqueued at a time.
func countersShowNone(s *state, enqueued event.Time) bool {
	c := &s.derived
	if s.counters == nil || c.counted < c.met {
		return false
	}
	n := s.counters.Get("requests_queued")
	return n.OK() && (n.V == 0 || n.V == 1 && enqueued <= c.counted)
}

// LoadBefore returns the length of the model load that was over before a cold request came, if TTFT does not contain it.
func LoadBefore(s *Snapshot, r *Request) (d time.Duration) {
	if !r.Cold || r.LoadTime() > 0 || len(s.Load) == 0 {
		return 0
	}
	load := loadOf(s.Load)
	if load.to > r.Enqueued {
		return 0
	}
	return time.Duration(load.to - load.from)
}

// Derived returns the names of the numbers that are derived from the stamps of requests and tokens because the engine does
// not report them.
func Derived(s *Snapshot) (names []string) {
	add := func(name string, derived, ok bool) {
		if derived && ok {
			names = append(names, name)
		}
	}
	t := &s.Throughput
	promptTimed := func(r *Request) bool {
		return slices.ContainsFunc(r.Stages, func(p StageSum) bool { return p.Stage == event.StagePrompt })
	}
	add("decode/s", t.Derived, t.Decode.OK())
	add("prefill/s", t.Derived && !slices.ContainsFunc(s.Requests, promptTimed), t.Prefill.OK())
	add("busy", t.Derived, t.BusyShare.OK())
	add("running", s.Counts.Derived, true)
	add("waiting", s.Counts.Derived, !s.Counts.AnyQueued)
	add("KV cells", s.KV.Derived, true)
	add("KV residency", s.KV.ResidencyDerived, s.KV.Residency.Count > 0)
	return names
}
