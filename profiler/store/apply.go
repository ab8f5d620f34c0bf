package store

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// state is everything derived from the events so far. Each part applies its events and shows itself in snapshots.
type state struct {
	version   uint64
	started   event.Time // earliest event
	hasEvents bool
	targets   Targets
	onRequest func(*Request)
	onGaps    func(r *Request, ns int64, n int)

	engine      *event.EngineInfo // the last one, never modified
	model       event.Model
	load        []StageSpan
	loaded      *modelLoad  // the last one, never modified; nil: not reported
	sourceDrops event.Drops // reported by the sources
	queueDrops  event.Drops // dropped by the queue

	counts counts
	rates  rates
	calls  [keptCalls]struct { // of the last passes, by number
		step  uint64
		calls *event.Calls
	}
	kv          kvCache
	machine     machine
	ops         *event.Ops
	speculation *event.Speculation
	counters    *event.Counters // the engine's own counters; nil: not reported
	log         []LogLine
	judge       verdict.Judge
	causes      causes
	active      *Snapshot // the windows when something last ran, see windowsOf; nil: nothing has run yet
	requests    ring
	latency     latency
	routing     routing
	aggregates  aggregates
	derived     derived
	past        *Past // nil: no snapshots are kept
}

// apply adds one event to the state. It trusts nothing: ids may be unknown or repeat, times may run backwards, payloads
// may be missing.
func (s *state) apply(e *event.Event) {
	if !s.hasEvents || e.At < s.started { // sources stamp before they emit: the first event may not be the earliest
		s.hasEvents, s.started = true, e.At
	}
	s.version++
	s.closeSeconds(e.At)
	switch e.Kind {
	case event.KindEngine:
		if p, ok := e.Data.(*event.EngineInfo); ok && p != nil {
			if s.engine != nil && p.Remote.Restarts > s.engine.Remote.Restarts && !p.Caps.Has(event.CapAggregates) {
				s.kv.KV, s.counters, s.load = KV{}, nil, nil // of the run before
			}
			engine := *p
			countBusy(s, e.At)
			s.engine = &engine
			s.derived.meet(e.At, p)
		}
	case event.KindModel:
		s.applyModel(e)
	case event.KindRequest:
		s.applyRequest(e)
	case event.KindStage:
		s.applyStage(e)
	case event.KindToken:
		s.applyToken(e)
		s.rates.addMade(e.Step, uint64(StampedTokens(e)))
	case event.KindExperts:
		if p, ok := e.Data.(*event.Experts); ok && p != nil {
			s.routing.apply(e.At, p)
		}
	case event.KindKV:
		if p, ok := e.Data.(*event.KV); ok && p != nil {
			applyKV(s, e.At, p)
		}
	case event.KindStep:
		s.counts.Steps++
		s.rates.addStep(e)
		addCalls(s, e)
		s.routing.pass.begin(e)
		if e.Prompt > 0 {
			s.causes.keepPass(e.At, e.Dur, 0)
		}
	case event.KindHost:
		if p, ok := e.Data.(*event.Host); ok && p != nil {
			s.machine.apply(s.started, e.At, p)
			s.keepHost(e.At, p)
		}
	case event.KindUsage:
		if p, ok := e.Data.(*event.Usage); ok && p != nil {
			s.applyUsage(e.At, p)
		}
	case event.KindAggregates:
		if p, ok := e.Data.(*event.Aggregates); ok && p != nil {
			s.applyAggregates(e.At, p)
		}
	case event.KindOps:
		if p, ok := e.Data.(*event.Ops); ok && p != nil {
			s.ops = p
		}
	case event.KindSpeculation:
		if p, ok := e.Data.(*event.Speculation); ok && p != nil {
			s.speculation = p
		}
	case event.KindCounters:
		if p, ok := e.Data.(*event.Counters); ok && p != nil {
			s.counters, s.derived.counted = p, e.At
		}
	case event.KindLog:
		s.applyLog(e)
	case event.KindDrops:
		if p, ok := e.Data.(*event.Drops); ok && p != nil {
			s.sourceDrops = *p
		}
	}
}

// applyLog stores a line of the engine's log.
func (s *state) applyLog(e *event.Event) {
	if len(s.log) >= MaxLog {
		s.counts.OmittedLogLines += MaxLog / 4
	}
	s.log = push(s.log, LogLine{At: e.At, Text: clip(e.Text, MaxLine)}, MaxLog)
}

// applyModel replaces the model. Router picks and operation times start at zero, unless only more is known of the same
// model, from its file.
func (s *state) applyModel(e *event.Event) {
	if p, ok := e.Data.(*event.Model); ok && p != nil {
		if full := s.model; full.Path != "" && full != *p {
			if full.Fill(p); full == *p {
				s.model = full
				return
			}
		}
		coldLoad(s, e)
		s.model, s.loaded = *p, newModelLoad(e)
		s.routing, s.ops, s.speculation, s.causes.read = routing{}, nil, nil, 0
		if t := s.causes.total; t != nil {
			t.prompts = promptTimes{}
		}
	}
}

// applyLoad adds a stage to the waterfall of the last model load.
func (s *state) applyLoad(e *event.Event) {
	if e.Stage == event.StageLoad {
		s.loaded = newModelLoad(e)
	}
	coldLoad(s, e)
	s.load = event.AddLoadStage(s.load, newSpan(e), 2*int(event.NumStages), func(p *StageSpan) event.LoadStage {
		return event.LoadStage{Stage: p.Stage, Name: p.Name, Begin: p.Start, End: p.End}
	})
}

// applyUsage keeps what the engine's threads did.
func (s *state) applyUsage(at event.Time, p *event.Usage) {
	c := &s.causes
	u := sample[event.Usage]{at - event.Time(p.Interval), at, p}
	c.usage = push(c.usage, u, maxUsage)
	if p.Read.OK() {
		c.read += p.Read.V
	}
	s.explainPending(u.from, at)
}

// keepHost keeps a sample of the machine.
func (s *state) keepHost(at event.Time, p *event.Host) {
	c := &s.causes
	h := sample[event.Host]{at - event.Time(p.Interval), at, p}
	c.hosts = push(c.hosts, h, maxHosts)
	if n := len(c.usage); p.Engine.Read.OK() && (n == 0 || c.usage[n-1].to <= h.from) { // otherwise usage counts it
		c.read += p.Engine.Read.V * time.Duration(p.Interval).Seconds()
	}
	s.explainPending(math.MinInt64, at)
}
