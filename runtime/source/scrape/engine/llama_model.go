package engine

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// llamaModel is a model of llama.cpp's server, with its own counters and slots.
type llamaModel struct {
	name       string   // "": the server has only one model and is not a router
	metrics    *metrics // nil: started without --metrics
	noSlots    bool
	quiet      bool // it is idle, and polls would keep it from falling asleep
	left       int  // reports since it was polled last
	slots      slotTracker
	hits       promptHits
	counters   event.Aggregates // the last report of the metrics
	countersAt event.Time       // when the metrics were read; 0: never
	restarts   int              // as of then
}

func newLlamaModel(s *Poller, name string) *llamaModel {
	m := &llamaModel{name: name, slots: slotTracker{ids: &s.requests}}
	m.recheck(s)
	return m
}

// startAtZero makes all that the model has counted count, because it was loaded after the given time.
func (m *llamaModel) startAtZero(s *Poller, since event.Time) {
	m.slots.startAtZero(since, s.clock.Now())
	if m.metrics != nil {
		m.metrics.lastReport = since
		m.metrics.gatherer.StartAtZero()
		m.hits.began = true
	}
}

// recheck adopts the endpoints found by a new identification.
func (m *llamaModel) recheck(s *Poller) {
	m.noSlots = !s.info.Slots
	m.slots.reconnected = true
	if !s.info.Sleeps || s.refused {
		m.slots.idleSlots = nil // the previous state may be out of date
	}
	if m.metrics != nil {
		return
	}
	if m.metrics = newMetrics(s); m.metrics != nil {
		m.metrics.path, m.metrics.perModel = m.withModel(m.metrics.path), m.name != ""
	}
}

// withModel adds the model to a path. The server does not load it if it has just been unloaded.
func (m *llamaModel) withModel(path string) string {
	if m.name == "" {
		return path
	}
	return path + "?model=" + url.QueryEscape(m.name) + "&autoload=false"
}

// firstPath returns the path that collect requests first.
func (m *llamaModel) firstPath() string {
	if m.metrics == nil {
		return "/slots"
	}
	return "/metrics"
}

func (m *llamaModel) collect(ctx context.Context, s *Poller, l *llama) (*event.Aggregates, error) {
	// Without a sign of work that is free, an idle model is left alone until it has slept and works again.
	alone := s.info.Sleeps && (s.info.MetricsWake || m.metrics == nil)
	switch {
	case alone && l.asleep:
		if m.quiet {
			m.quiet, m.left = false, 0 // another reason
		}
		return m.unpolled(s, sleeps), nil
	case alone && m.quiet:
		return m.unpolled(s, "the model is idle; polling would keep it awake: --keep-awake polls"), nil
	}
	before := m.countersAt
	report, err := m.poll(ctx, s, l)
	m.left = 0
	m.quiet = alone && err == nil && (m.metrics == nil || m.countersAt != before) && report.Running.OK() && report.Running.V+report.Waiting.V == 0
	return report, err
}

// sleeps is the reason why an endpoint of a sleeping model is not polled.
const sleeps = "the model is asleep; polling would wake it"

// unpolled returns the report of a model that is not polled. Requests may have come since the last poll.
func (m *llamaModel) unpolled(s *Poller, why string) *event.Aggregates {
	m.left++
	report := &event.Aggregates{Interval: s.sinceReport(), AtLeast: true}
	if m.metrics != nil {
		addEndpoint(report, "/metrics", why)
	}
	if !m.noSlots {
		addEndpoint(report, "/slots", why)
	}
	return report
}

func (m *llamaModel) poll(ctx context.Context, s *Poller, l *llama) (*event.Aggregates, error) {
	before := m.countersAt
	report, err := m.readCounters(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case m.noSlots:
		m.countHits(report, before, nil)
		addEndpoint(report, "/slots", noSlots)
		return report, nil
	case m.metrics.several() != "":
		addEndpoint(report, "/slots", m.metrics.several())
		return report, nil
	}
	counted := m.countersAt != before
	m.slots.delayRates = m.metrics != nil && !counted
	active := m.metrics == nil || m.slots.busy > 0 || hasWork(report)
	switch {
	case l.asleep:
		m.countHits(report, before, nil)
		addEndpoint(report, "/slots", sleeps)
		if m.metrics != nil && active {
			l.propsAt = 0 // the model may be awake again
		}
		return report, nil
	case !active && m.slots.idleSlots != nil:
		m.countHits(report, before, nil)
		addEndpoint(report, "/slots", "")
		m.slots.update(m.slots.idleSlots, s.clock.Now(), report)
		return report, nil
	}
	list, failed := m.readSlots(ctx, s, report)
	if failed == nil {
		m.countHits(report, before, list)
		return report, nil
	}
	if !counted { // check whether the server still responds
		if m.metrics == nil {
			return nil, failed
		}
		m.countersAt = 0
		if report, err = m.readCounters(ctx, s); err != nil {
			return nil, err
		}
	}
	m.countHits(report, before, nil)
	addEndpoint(report, "/slots", failed.Error()) // the error must not discard the metrics
	m.slots.countOnly(s.clock.Now(), report)
	return report, nil
}

// hasWork reports whether the metrics show requests in progress or since the last poll. If not, all slots are idle and
// are not polled: a server with --sleep-idle-seconds counts a poll of its slots as work and would never sleep.
func hasWork(report *event.Aggregates) bool {
	for _, r := range []event.Reading{report.Running, report.Waiting, report.Prompt, report.Generated} {
		if r.OK() && r.V > 0 {
			return true
		}
	}
	return !report.Running.OK()
}

// readCounters reads the metrics if the interval has passed, and otherwise returns the last values without new counts.
func (m *llamaModel) readCounters(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	if m.metrics == nil {
		report := &event.Aggregates{Interval: s.sinceReport()}
		addEndpoint(report, "/metrics", "the server was started without --metrics")
		return report, nil
	}
	now := s.clock.Now()
	if m.countersAt != 0 && now-m.countersAt < event.Time(s.opt.Interval)*9/10 {
		again := m.counters
		again.Interval, again.Histograms, again.Counts, again.Ratios, again.Earlier, again.Void = s.sinceReport(), nil, nil, nil, nil, false
		// These increases are already reported.
		for _, r := range []*event.Reading{&again.Prompt, &again.Cached, &again.Generated, &again.Finished, &again.Failed, &again.Cancelled} {
			if r.OK() {
				r.V = 0
			}
		}
		return &again, nil
	}
	if err := m.metrics.read(ctx, s); err != nil {
		if fetch.Unsupported(err) {
			m.metrics, m.counters = nil, event.Aggregates{} // some servers say so only in reply to a request
			return m.readCounters(ctx, s)
		}
		return nil, err
	}
	m.countersAt = now
	restarted := m.metrics.gatherer.Restarts > m.restarts
	if m.restarts = m.metrics.gatherer.Restarts; restarted {
		m.hits = promptHits{began: true}
		m.slots.restart(true)
	}
	m.slots.restarted = false
	m.counters = *m.metrics.report(s)
	if m.counters.Prefill.OK() && !m.counters.Prompt.OK() {
		m.slots.uncached += m.counters.Prefill.V * float64(m.counters.Interval) / 1e9
	}
	report := m.counters
	report.Interval = s.sinceReport()
	return &report, nil
}

// noSlots is the reason why /slots is not polled.
const noSlots = "the server was started with --no-slots"

// readSlots polls the slots and adds them to the report. It returns them; nil if the server has none.
func (m *llamaModel) readSlots(ctx context.Context, s *Poller, report *event.Aggregates) (list []slot, err error) {
	list, err = fetchSlots(ctx, s.client, m.withModel("/slots"))
	if fetch.HasStatus(err) && !fetch.NeedsKey(err) && !fetch.HasStatus(err, http.StatusServiceUnavailable) {
		m.noSlots = true
		addEndpoint(report, "/slots", noSlots)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	addEndpoint(report, "/slots", "")
	m.slots.update(list, s.clock.Now(), report)
	if m.slots.busy == 0 {
		m.slots.idleSlots = list
	}
	return list, nil
}

// promptHits counts the tokens of prompts that have ended, and those of them from the cache. llama.cpp counts the cached
// tokens when a prompt begins and the computed ones batch by batch: until its end, a quotient of the two is wrong.
type promptHits struct {
	began        bool    // there is a state to count from
	cached, all  float64 // counted by the server since the last report
	openC, openA float64 // of them, tokens of prompts in progress at the last report
}

// take adds what the server has counted since the last call, and returns the tokens of the prompts that have ended, all 0
// while that is unknown. openC and openA are the cached tokens and all tokens so far of the prompts in progress.
func (h *promptHits) take(cached, all, openC, openA float64) (endedC, endedA float64) {
	if h.cached, h.all = h.cached+cached, h.all+all; !h.began {
		*h = promptHits{began: true, openC: openC, openA: openA}
		return 0, 0
	}
	endedC, endedA = h.cached-(openC-h.openC), h.all-(openA-h.openA)
	if endedC < 0 || endedA < endedC { // the slots are ahead of the counters: later
		return 0, 0
	}
	*h = promptHits{began: true, openC: openC, openA: openA}
	return endedC, endedA
}

// countHits replaces the cache hits of a report, if its counters were read since before, by those of the prompts that
// have ended. slots are those read after the counters, nil if none were: then a running request may be at its prompt.
func (m *llamaModel) countHits(report *event.Aggregates, before event.Time, slots []slot) {
	if m.metrics == nil || m.countersAt == before || report.Cached.Origin == event.NotReported {
		return
	}
	report.Ratios = slices.DeleteFunc(slices.Clone(report.Ratios), func(r event.Ratio) bool { return r.Name == event.RatioCacheHits })
	report.CacheHits = event.Absent(event.NotYet)
	var cached, computed float64
	for i := range slots {
		if v := &slots[i]; v.Processing && v.Next.Decoded <= 0 {
			cached, computed = cached+float64(max(v.Cached, 0)), computed+float64(max(v.Processed, 0))
		}
	}
	if slots == nil && (!report.Running.OK() || report.Running.V > 0) {
		m.hits.cached, m.hits.all = m.hits.cached+report.Cached.V, m.hits.all+report.Prompt.V
	} else if endedC, endedA := m.hits.take(report.Cached.V, report.Prompt.V, cached, cached+computed); endedA > 0 {
		report.Ratios = append(report.Ratios, event.Ratio{Name: event.RatioCacheHits, Part: event.ReportedValue(endedC), Whole: event.ReportedValue(endedA)})
		report.CacheHits = cacheHits(report)
	}
	m.counters.CacheHits = report.CacheHits // until the counters are read again
}

// cacheHits returns the cache hits among the ratios of a report.
func cacheHits(report *event.Aggregates) event.Reading {
	for _, r := range report.Ratios {
		if r.Name == event.RatioCacheHits && r.Part.OK() && r.Whole.V > 0 {
			return event.DerivedValue(min(r.Part.V/r.Whole.V, 1))
		}
	}
	if report.Cached.Origin == event.NotReported {
		return event.Reading{}
	}
	return event.Absent(event.NotYet)
}

// mergeEndpoints adds the endpoints of one model to those of all models. The reason why one was not read gets the model
// name as prefix.
func mergeEndpoints(sum, part *event.Aggregates, name string) {
	for _, v := range part.Endpoints {
		if v.Reason != "" {
			v.Reason = name + ": " + v.Reason
		}
		switch i := slices.IndexFunc(sum.Endpoints, func(w event.Endpoint) bool { return w.Name == v.Name }); {
		case i < 0:
			sum.Endpoints = append(sum.Endpoints, v)
		case sum.Endpoints[i].Reason == "":
			sum.Endpoints[i].Reason = v.Reason
		}
	}
}
