package scrape

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// served is a model of llama.cpp's server, with counters and slots of its own.
type served struct {
	name    string   // "": the server has one model, and does not route
	metrics *metrics // nil: it was started without --metrics
	noSlots bool
	slots   slots
	parts   event.Report // of the metrics, when they were read last
	read    event.Time   // when; 0: never
}

func newServed(s *Source, name string) *served {
	m := &served{name: name, slots: slots{shared: s.opt.Shared}}
	m.reconsider(s)
	return m
}

// reconsider takes in what the server is found to have.
func (m *served) reconsider(s *Source) {
	m.noSlots = !s.info.Slots
	m.slots.idle = nil // as it was before may not be how it is now
	if m.metrics != nil {
		return
	}
	if m.metrics = newMetrics(s); m.metrics != nil {
		m.metrics.path, m.metrics.part = m.of(m.metrics.path), m.name != ""
	}
}

// of is a path with the model that it is about. Only one that is loaded is asked for: another one would be loaded.
func (m *served) of(path string) string {
	if m.name == "" {
		return path
	}
	return path + "?model=" + url.QueryEscape(m.name)
}

// first is what is asked for first.
func (m *served) first() string {
	if m.metrics == nil {
		return "/slots"
	}
	return "/metrics"
}

func (m *served) look(ctx context.Context, s *Source, l *llama) (*event.Report, error) {
	before := m.read
	report, err := m.counters(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case m.noSlots:
		from(report, "/slots", noSlots)
		return report, nil
	}
	counted := m.read != before
	m.slots.waits = m.metrics != nil && !counted
	works := m.metrics == nil || m.slots.busy > 0 || works(report)
	switch {
	case l.asleep:
		from(report, "/slots", "the model sleeps, and asking would wake it")
		if m.metrics != nil && works {
			l.props = 0 // it may have woken up
		}
		return report, nil
	case !works && m.slots.idle != nil:
		from(report, "/slots", "")
		m.slots.follow(m.slots.idle, s.opt.Clock.Now(), report)
		return report, nil
	}
	failed := m.ask(ctx, s, report)
	if failed == nil {
		return report, nil
	}
	if !counted { // does it answer at all?
		if m.metrics == nil {
			return nil, failed
		}
		m.read = 0
		if report, err = m.counters(ctx, s); err != nil {
			return nil, err
		}
	}
	from(report, "/slots", "the server "+failed.Error()) // what the metrics have told must not be lost
	m.slots.unseen(s.opt.Clock.Now(), report)
	return report, nil
}

// works reports whether the metrics tell of requests that are at work or were since the last look. Otherwise all slots are idle, and the server is not
// asked for them: to one with --sleep-idle-seconds that would count as work, and it would never sleep.
func works(report *event.Report) bool {
	for _, r := range []event.Reading{report.Running, report.Waiting, report.Prompt, report.Generated} {
		if r.OK() && r.V > 0 {
			return true
		}
	}
	return !report.Running.OK()
}

// counters reads the metrics, where it is time to.
func (m *served) counters(ctx context.Context, s *Source) (*event.Report, error) {
	if m.metrics == nil {
		report := &event.Report{Interval: s.since()}
		from(report, "/metrics", "the server was started without --metrics")
		return report, nil
	}
	now := s.opt.Clock.Now()
	if m.read != 0 && now-m.read < event.Time(s.opt.Interval)*9/10 {
		again := m.parts
		again.Interval, again.Times = s.since(), nil
		for _, r := range []*event.Reading{&again.Prompt, &again.Cached, &again.Generated, &again.Finished, &again.Failed} { // told once
			if r.OK() {
				r.V = 0
			}
		}
		return &again, nil
	}
	if err := m.metrics.read(ctx, s); err != nil {
		refused := (*fetch.Status)(nil)
		if errors.As(err, &refused) && (refused.Code == http.StatusNotImplemented || refused.Code == http.StatusNotFound) {
			m.metrics, m.parts = nil, event.Report{} // it says so only when asked
			return m.counters(ctx, s)
		}
		return nil, err
	}
	m.read = now
	m.parts = *m.metrics.report(s)
	report := m.parts
	report.Interval = s.since()
	return &report, nil
}

// noSlots is why a server is not asked for its slots.
const noSlots = "the server was started with --no-slots"

// ask asks for the slots and fills in what they tell.
func (m *served) ask(ctx context.Context, s *Source, report *event.Report) error {
	list, err := askSlots(ctx, s.client, m.of("/slots"))
	if refused := (*fetch.Status)(nil); errors.As(err, &refused) && !refused.NeedsKey() && refused.Code != http.StatusServiceUnavailable {
		m.noSlots = true
		from(report, "/slots", noSlots)
		return nil
	}
	if err != nil {
		return err
	}
	from(report, "/slots", "")
	m.slots.follow(list, s.opt.Clock.Now(), report)
	if m.slots.busy == 0 {
		m.slots.idle = list
	}
	return nil
}

// hits is the share of the models' prompt tokens that came from a cache.
func hits(list []*served) event.Reading {
	var cached, prompt event.Reading
	for _, m := range list {
		cached, prompt = plus(cached, m.parts.Cached), plus(prompt, m.parts.Prompt)
	}
	switch {
	case cached.Origin == event.NotReported || prompt.Origin == event.NotReported:
		return event.Reading{}
	case !cached.OK() || prompt.V <= 0:
		return event.Absent(event.NotYet)
	}
	return event.From(min(cached.V/prompt.V, 1))
}

// sources adds where the numbers of one model come from to those of others. That one model lacks a part is told with its name.
func sources(sum, part *event.Report, name string) {
	for _, v := range part.Sources {
		if v.Why != "" {
			v.Why = name + ": " + v.Why
		}
		switch i := slices.IndexFunc(sum.Sources, func(w event.Source) bool { return w.Name == v.Name }); {
		case i < 0:
			sum.Sources = append(sum.Sources, v)
		case sum.Sources[i].Why == "":
			sum.Sources[i].Why = v.Why
		}
	}
}
