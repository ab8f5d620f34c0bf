package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// How often llama.cpp's server is asked: for its slots, which it answers between two batches, faster while it works; for its metrics, which
// makes it begin its rates anew for everybody; and for its state, which does not wake it.
const (
	slotsEvery = 250 * time.Millisecond
	propsEvery = 5 * time.Second
)

// llama watches a server of llama.cpp.
type llama struct {
	metrics *metrics // nil: it was started without --metrics
	slots   slots
	parts   event.Report // of the metrics, when they were read last
	read    event.Time   // when; 0: never
	props   event.Time   // when its state was asked for
	asleep  bool
}

func (l *llama) pause(interval time.Duration) time.Duration {
	if l.slots.busy > 0 {
		return min(slotsEvery, interval)
	}
	return interval
}

func (l *llama) reconsider(s *Source) {
	if l.metrics == nil {
		l.metrics = newMetrics(s)
	}
}

func (l *llama) look(ctx context.Context, s *Source) (*event.Report, error) {
	if err := l.state(ctx, s); err != nil {
		return nil, err
	}
	if s.engine.State == event.EngineLoading || s.info.Router && len(loaded(s.info.Models)) == 0 {
		return &event.Report{Interval: s.since()}, nil
	}
	before := l.read
	report, err := l.counters(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case !s.info.Slots:
		from(report, "/slots", noSlots)
		return report, nil
	case l.asleep:
		from(report, "/slots", "the model sleeps, and asking would wake it")
	}
	counted := l.read != before
	l.slots.waits = l.metrics != nil && !counted
	works := l.metrics == nil || l.slots.busy > 0 || works(report)
	switch {
	case l.asleep:
		if l.metrics != nil && works {
			l.props = 0 // it may have woken up
		}
		return report, nil
	case !works && l.slots.at != 0:
		from(report, "/slots", "")
		l.slots.follow(l.slots.idle, s.opt.Clock.Now(), report)
		return report, nil
	}
	failed := l.slots.look(ctx, s, report)
	if failed == nil {
		return report, nil
	}
	if !counted { // does it answer at all?
		if l.metrics == nil {
			return nil, failed
		}
		l.read = 0
		if report, err = l.counters(ctx, s); err != nil {
			return nil, err
		}
	}
	from(report, "/slots", "the server "+failed.Error()) // what the metrics have told must not be lost
	l.slots.unseen(s.opt.Clock.Now(), report)
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

// state asks whether the model is loaded, or sleeps: then it must not be asked for its slots, which would wake it.
func (l *llama) state(ctx context.Context, s *Source) error {
	now := s.opt.Clock.Now()
	changed, loads := s.router.news()
	if l.props != 0 && !changed && now-l.props < event.Time(propsEvery) && s.engine.State == event.EngineReady {
		return nil
	}
	l.props = now
	if s.info.Router {
		return routerModels(ctx, s, loads)
	}
	var props struct {
		Sleeping bool `json:"is_sleeping"`
		Slots    int  `json:"total_slots"`
	}
	err := s.client.JSON(ctx, "/props", &props)
	if refused := (*fetch.Status)(nil); errors.As(err, &refused) && refused.Code == http.StatusServiceUnavailable {
		s.stands(event.EngineLoading, "")
		return nil
	}
	if err != nil {
		return err
	}
	if s.engine.State == event.EngineLoading { // what was asked before was not answered
		s.met = false
		s.stands(event.EngineReady, "")
		return nil
	}
	l.asleep = props.Sleeping
	if props.Slots > 0 && props.Slots != s.engine.Slots {
		s.engine.Slots = props.Slots
		s.introduce()
	}
	if l.asleep {
		s.stands(event.EnginePaused, "the model sleeps until a request comes")
	} else {
		s.stands(event.EngineReady, "")
	}
	return nil
}

// stands tells what the engine does, where that has changed.
func (s *Source) stands(state event.EngineState, why string) {
	if s.engine.State != state || s.engine.Reason != why {
		s.engine.State, s.engine.Reason = state, why
		s.introduce()
	}
}

// of is a path with the model that it is about, where a server has several in processes of their own. Only one that is loaded is asked for: another one
// would be loaded.
func (s *Source) of(path string) string {
	if !s.info.Router {
		return path
	}
	return path + "?model=" + url.QueryEscape(loaded(s.info.Models)[0].Name)
}

// counters reads the metrics, where it is time to.
func (l *llama) counters(ctx context.Context, s *Source) (*event.Report, error) {
	if l.metrics == nil {
		report := &event.Report{Interval: s.since()}
		from(report, "/metrics", "the server was started without --metrics")
		return report, nil
	}
	now := s.opt.Clock.Now()
	if l.read != 0 && now-l.read < event.Time(s.opt.Interval)*9/10 {
		again := l.parts
		again.Interval = s.since()
		for _, r := range []*event.Reading{&again.Prompt, &again.Cached, &again.Generated, &again.Finished, &again.Failed} { // told once
			if r.OK() {
				r.V = 0
			}
		}
		return &again, nil
	}
	l.metrics.path = s.of("/metrics")
	if err := l.metrics.read(ctx, s); err != nil {
		refused := (*fetch.Status)(nil)
		if errors.As(err, &refused) && (refused.Code == http.StatusNotImplemented || refused.Code == http.StatusNotFound) {
			l.metrics = nil // it says so only when asked
			return l.counters(ctx, s)
		}
		return nil, err
	}
	l.read = now
	l.parts = *l.metrics.report(s)
	report := l.parts
	report.Interval = s.since()
	return &report, nil
}

// nextToken is an object, or an array of one.
type nextToken struct {
	Decoded int `json:"n_decoded"`
	Remain  int `json:"n_remain"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *nextToken) UnmarshalJSON(raw []byte) error {
	type plain nextToken
	var list []plain
	if json.Unmarshal(raw, &list) == nil {
		if len(list) > 0 {
			*n = nextToken(list[0])
		}
		return nil
	}
	return json.Unmarshal(raw, (*plain)(n))
}

// slot is one of the slots as the server tells it.
type slot struct {
	ID         int       `json:"id"`
	Context    int       `json:"n_ctx"`
	Processing bool      `json:"is_processing"`
	Task       int64     `json:"id_task"`
	Tokens     int       `json:"n_prompt_tokens"` // in the cache, generated ones included
	Processed  int       `json:"n_prompt_tokens_processed"`
	Cached     int       `json:"n_prompt_tokens_cache"`
	Next       nextToken `json:"next_token"`
	Params     struct {
		Predict int     `json:"n_predict"`
		Seed    float64 `json:"seed"`
	} `json:"params"`
}

// routerModels reads which models of a router are loaded. As long as none is, the server is loading where one is being loaded.
func routerModels(ctx context.Context, s *Source, loads bool) error {
	_, info, err := identify.Identify(ctx, s.client)
	if err != nil {
		return err
	}
	s.info = info
	now := loaded(info.Models)
	s.models(now)
	if loads && len(now) == 0 {
		s.stands(event.EngineLoading, "")
	} else {
		s.stands(event.EngineReady, "")
	}
	return nil
}
