package scrape

import (
	"context"
	"errors"
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
	slots      slotTracker
	counters   event.Aggregates // the last report of the metrics
	countersAt event.Time       // when the metrics were read; 0: never
}

func newLlamaModel(s *Poller, name string) *llamaModel {
	m := &llamaModel{name: name, slots: slotTracker{ids: s.opt.RequestIDs}}
	m.recheck(s)
	return m
}

// startAtZero makes all that the model has counted count, because it was loaded after the given time.
func (m *llamaModel) startAtZero(s *Poller, since event.Time) {
	m.slots.startAtZero(since, s.clock.Now())
	if m.metrics != nil {
		m.metrics.lastReport = since
		m.metrics.gatherer.StartAtZero()
	}
}

// recheck adopts the endpoints found by a new identification.
func (m *llamaModel) recheck(s *Poller) {
	m.noSlots = !s.info.Slots
	m.slots.idleSlots = nil // the previous state may be out of date
	if m.metrics != nil {
		return
	}
	if m.metrics = newMetrics(s); m.metrics != nil {
		m.metrics.path, m.metrics.perModel = m.withModel(m.metrics.path), m.name != ""
	}
}

// withModel adds the model to a path. The model must be loaded: the server would load it otherwise.
func (m *llamaModel) withModel(path string) string {
	if m.name == "" {
		return path
	}
	return path + "?model=" + url.QueryEscape(m.name)
}

// firstPath returns the path that collect requests first.
func (m *llamaModel) firstPath() string {
	if m.metrics == nil {
		return "/slots"
	}
	return "/metrics"
}

func (m *llamaModel) collect(ctx context.Context, s *Poller, l *llama) (*event.Aggregates, error) {
	before := m.countersAt
	report, err := m.readCounters(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case m.noSlots:
		addEndpoint(report, "/slots", noSlots)
		return report, nil
	}
	counted := m.countersAt != before
	m.slots.delayRates = m.metrics != nil && !counted
	active := m.metrics == nil || m.slots.busy > 0 || hasWork(report)
	switch {
	case l.asleep:
		addEndpoint(report, "/slots", "the model is asleep; polling would wake it")
		if m.metrics != nil && active {
			l.propsAt = 0 // the model may be awake again
		}
		return report, nil
	case !active && m.slots.idleSlots != nil:
		addEndpoint(report, "/slots", "")
		m.slots.update(m.slots.idleSlots, s.clock.Now(), report)
		return report, nil
	}
	failed := m.readSlots(ctx, s, report)
	if failed == nil {
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
		again.Interval, again.Histograms, again.Counts, again.Ratios, again.Earlier = s.sinceReport(), nil, nil, nil, nil
		// These increases are already reported.
		for _, r := range []*event.Reading{&again.Prompt, &again.Cached, &again.Generated, &again.Finished, &again.Failed, &again.Cancelled} {
			if r.OK() {
				r.V = 0
			}
		}
		return &again, nil
	}
	if err := m.metrics.read(ctx, s); err != nil {
		refused := (*fetch.StatusError)(nil)
		if errors.As(err, &refused) && (refused.Code == http.StatusNotImplemented || refused.Code == http.StatusNotFound) {
			m.metrics, m.counters = nil, event.Aggregates{} // some servers say so only in reply to a request
			return m.readCounters(ctx, s)
		}
		return nil, err
	}
	m.countersAt = now
	m.counters = *m.metrics.report(s)
	report := m.counters
	report.Interval = s.sinceReport()
	return &report, nil
}

// noSlots is the reason why /slots is not polled.
const noSlots = "the server was started with --no-slots"

// readSlots polls the slots and adds them to the report.
func (m *llamaModel) readSlots(ctx context.Context, s *Poller, report *event.Aggregates) error {
	list, err := fetchSlots(ctx, s.client, m.withModel("/slots"))
	if refused := (*fetch.StatusError)(nil); errors.As(err, &refused) && !refused.NeedsKey() && refused.Code != http.StatusServiceUnavailable {
		m.noSlots = true
		addEndpoint(report, "/slots", noSlots)
		return nil
	}
	if err != nil {
		return err
	}
	addEndpoint(report, "/slots", "")
	m.slots.update(list, s.clock.Now(), report)
	if m.slots.busy == 0 {
		m.slots.idleSlots = list
	}
	return nil
}

// cacheHitShare returns the share of the models' prompt tokens that came from a cache.
func cacheHitShare(list []*llamaModel) event.Reading {
	var cached, prompt event.Reading
	for _, m := range list {
		cached, prompt = cached.Plus(m.counters.Cached), prompt.Plus(m.counters.Prompt)
	}
	switch {
	case cached.Origin == event.NotReported || prompt.Origin == event.NotReported:
		return event.Reading{}
	case !cached.OK() || prompt.V <= 0:
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(min(cached.V/prompt.V, 1))
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
