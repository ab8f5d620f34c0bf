package scrape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
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
	served map[string]*served // by the name of the model; "": the server has one, and does not route
	props  event.Time         // when its state was asked for
	asleep bool
}

func (l *llama) pause(interval time.Duration) time.Duration {
	for _, m := range l.served {
		if m.slots.busy > 0 {
			return min(slotsEvery, interval)
		}
	}
	return interval
}

func (l *llama) reconsider(s *Source) {
	for _, m := range l.served {
		m.reconsider(s)
	}
}

func (l *llama) look(ctx context.Context, s *Source) (*event.Report, error) {
	if err := l.state(ctx, s); err != nil {
		return nil, err
	}
	list := l.follow(s)
	if s.engine.State == event.EngineLoading || len(list) == 0 {
		return &event.Report{Interval: s.since()}, nil
	}
	report, err := l.all(ctx, s, list)
	if err != nil {
		return nil, err
	}
	if n := len(report.Slots); n > 0 && n != s.engine.Slots {
		s.engine.Slots = n
		s.introduce()
	}
	return report, nil
}

// follow are the models that are loaded, at most maxRunners, with what is known of their counters. What was known of one that is loaded no more is
// forgotten: when it is loaded again it counts anew.
func (l *llama) follow(s *Source) (list []*served) {
	names := []string{""}
	if s.info.Router {
		names = names[:0]
		for _, m := range loaded(s.info.Models) {
			if m.Name != "" && !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
		names = names[:min(len(names), maxRunners)]
	}
	maps.DeleteFunc(l.served, func(name string, _ *served) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		if l.served[name] == nil {
			if l.served == nil {
				l.served = make(map[string]*served)
			}
			l.served[name] = newServed(s, name)
		}
		list = append(list, l.served[name])
	}
	return list
}

// all is what the models tell, as of one server. One that does not answer, as it may have been unloaded just now, is left out, unless no other does.
func (l *llama) all(ctx context.Context, s *Source, list []*served) (*event.Report, error) {
	if len(list) == 1 {
		return list[0].look(ctx, s, l)
	}
	sum, answered, failed := &event.Report{Interval: s.since()}, false, error(nil)
	for _, m := range list {
		part, err := m.look(ctx, s, l)
		if err != nil {
			failed, l.props = err, 0
			part = &event.Report{}
			from(part, m.first(), "the server "+err.Error())
		}
		answered = answered || err == nil
		beside(sum, part)
		sources(sum, part, m.name)
	}
	if !answered {
		return nil, failed
	}
	sum.CacheHits = hits(list)
	if n := len(loaded(s.info.Models)); n > len(list) {
		from(sum, "/slots of all models", fmt.Sprintf("the first %d of %d are followed", len(list), n))
	}
	return sum, nil
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
