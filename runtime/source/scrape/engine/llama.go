package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

var llamaEngine = Engine{
	Kind:       Llama,
	LinksLlama: true,
	server:     "llama.cpp",
	owners:     []string{"llamacpp"},
	answers:    isLlama,
	details:    llamaDetails,
	Metrics:    gather.NewTable([]string{"llamacpp:"}, "", llamaMetrics),
	collector: func(s *Poller, m *metrics) collector {
		if s.info.bare && m != nil { // several of them behind one address, or only their metrics
			return m
		}
		return &llama{}
	},
	Load: llamaLoad,
	Programs: []Program{
		{Name: "llama-server", names: []string{"llama-server"}, prefix: true, Port: 8080},
		{Name: "llamafile", names: []string{"llamafile"}, Port: 8080},
	},
	Settings: map[string]string{
		"--parallel": "-np", "--ctx": "-c", "--threads": "-t", "smaller prompt chunks": "-ub", "shorter drafts": "--spec-draft-n-max",
	},
}

// llamaMetrics are its metrics. Its rates cover only the time since any reader's last request.
var llamaMetrics = append([]gather.Alias{
	{Metric: "requests_processing", Role: gather.Running},
	{Metric: "requests_deferred", Role: gather.Waiting},
	{Metric: "kv_cache_usage_ratio", Role: gather.KVUsage}, // until 2025-07
	{Metric: "kv_cache_tokens", Role: gather.KVUsed},       // until 2025-07
	{Metric: "tokens_predicted", Role: gather.Generated, AtEnd: true},
	{Metric: "tokens_predicted_seconds", Role: gather.DecodeTime},
	{Metric: "prompt_tokens", Role: gather.PromptComputed},
	{Metric: "prompt_tokens", Role: gather.Ratio, Name: "prompt_work_tokens_per_s", Of: "prompt_seconds"},
	{Metric: "n_busy_slots_per_decode", Role: gather.OtherMean, Name: "busy_slots_per_pass"}, // a mean since the start
	{Metric: "prompt_tokens_cached", Role: gather.PromptCached},                              // since b10406
}, draftAliases()...)

// isLlama detects a server of llama.cpp that is too old, or too restricted, to be named in its list of models.
func isLlama(ctx context.Context, p *identification) bool {
	var props struct {
		Settings map[string]any `json:"default_generation_settings"`
	}
	return p.getJSON(ctx, "/props", &props) == nil && props.Settings != nil
}

// llamaDetails reads /props of llama.cpp's server, which works while its model sleeps.
func llamaDetails(ctx context.Context, p *identification) {
	var props struct {
		Build    string `json:"build_info"`
		Role     string `json:"role"`
		Alias    string `json:"model_alias"`
		Path     string `json:"model_path"`
		Type     string `json:"model_ftype"`
		Slots    *bool  `json:"endpoint_slots"`
		Total    int    `json:"total_slots"`
		Metrics  bool   `json:"endpoint_metrics"`
		Sleeping *bool  `json:"is_sleeping"` // null: the build has no sleep
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	err := p.getJSON(ctx, "/props", &props)
	p.info.rejected = fetch.HasStatus(err, http.StatusServiceUnavailable)
	p.info.bare = p.info.bare && err != nil && !p.info.rejected
	if err != nil {
		return
	}
	p.info.Version, p.info.Router = props.Build, p.info.Router || props.Role == "router"
	p.info.Slots, p.info.SlotCount = props.Slots == nil || *props.Slots, max(props.Total, 0)
	p.info.Sleeps = props.Sleeping != nil || p.info.Router
	p.info.MetricsWake = p.info.Sleeps && buildNumber(props.Build) < firstRestful
	if props.Metrics || props.Slots == nil { // older builds do not report endpoints: poll to find out
		p.info.MetricsPath = "/metrics"
	}
	if p.info.Router {
		return
	}
	if len(p.info.Models) == 0 {
		p.info.Models = []Model{{Loaded: true, Model: event.Model{Name: props.Alias}}}
	}
	m := &p.info.Models[0]
	m.Name = FileName(m.Name)
	m.Path, m.Quantisation = props.Path, cmp.Or(props.Type, m.Quantisation)
	m.Context = max(cmp.Or(props.Settings.Context, m.Context), 0)
}

// firstRestful is a build of llama.cpp whose metrics can be read without waking its model, or keeping it awake. Builds
// since the end of 2025, when sleep was added, until August 2026 count that as work.
const firstRestful = 10582

// buildNumber returns the number in build_info, such as "b10582-e85caa81e"; 0 if there is none. Builds from a copy of the
// source without its history have a small one.
func buildNumber(build string) int {
	number, _, _ := strings.Cut(strings.TrimPrefix(build, "b"), "-")
	n, _ := strconv.Atoi(number)
	return n
}

// llamaLoad counts the busy slots, and the tokens generated in each, if reading them cannot wake a model. The metrics are
// left alone: each read restarts their rates.
func llamaLoad(ctx context.Context, c *fetch.Client, info *Info) (l Load, tokens map[string]float64) {
	if !info.Slots || info.Router || info.Sleeps {
		return l, nil
	}
	slots, err := fetchSlots(ctx, c, "/slots")
	if err != nil {
		return l, nil
	}
	tokens = map[string]float64{}
	for _, s := range slots {
		if s.Processing {
			tokens[fmt.Sprint(s.ID, "/", s.Task)] = float64(s.Next.Decoded)
		}
	}
	l.Running = event.ReportedValue(float64(len(tokens)))
	return l, tokens
}

// Polling intervals of llama.cpp's server: slots, faster while it works, because it answers between two batches; and
// its state, which does not wake a sleeping model. Metrics are read at the user's interval, because each read resets
// the server's rates for all readers.
const (
	slotsEvery = 250 * time.Millisecond
	propsEvery = 5 * time.Second
)

// llama collects from a server of llama.cpp.
type llama struct {
	models  map[string]*llamaModel // by model name; "": the server has only one model and is not a router
	loaded  []string               // all loaded models of a router, as of listed
	listed  event.Time             // when they were listed last; 0: never
	propsAt event.Time             // when the state was read last
	asleep  bool
	resting bool // a model is asleep or not polled: only the state shows when it works again
}

// resting is the state of a model that is idle, and that polls would keep from falling asleep.
const resting = "idle: not polled, so it can sleep"

func (l *llama) interval(interval time.Duration) time.Duration {
	for _, m := range l.models {
		if m.slots.busy > 0 {
			return min(slotsEvery, interval)
		}
	}
	return interval
}

func (l *llama) recheck(s *Poller) {
	l.propsAt = 0 // it may have fallen asleep
	for _, m := range l.models {
		m.quiet = m.quiet && !s.refused // a server that was restarted has not fallen asleep yet
		m.recheck(s)
	}
}

func (l *llama) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	if err := l.readState(ctx, s); err != nil {
		return nil, err
	}
	list := l.loadedModels(s)
	if s.engine.State == event.EngineLoading || len(list) == 0 {
		return &event.Aggregates{Interval: s.sinceReport()}, nil
	}
	defer l.setResting(s, list)
	report, err := l.collectAll(ctx, s, list)
	if err != nil || len(list) == 1 && list[0].left > 1 { // the next report covers the time since the last one
		return nil, err
	}
	if n := len(report.Slots); n > 0 {
		s.setSlots(n)
	}
	return report, nil
}

// loadedModels returns the loaded models with their counters, at most maxRunners. It drops the counters of unloaded
// models: they restart at 0 with the next load. Those that sleep keep theirs.
func (l *llama) loadedModels(s *Poller) (list []*llamaModel) {
	names, before, since := []string{""}, l.loaded, l.listed
	if s.info.Router {
		names, l.loaded = names[:0], nil
		for _, m := range s.info.Models {
			if m.Name == "" || slices.Contains(l.loaded, m.Name) || !m.Loaded && !m.Asleep {
				continue
			}
			if l.loaded = append(l.loaded, m.Name); m.Loaded && len(names) < maxRunners {
				names = append(names, m.Name)
			} else if one := l.models[m.Name]; one != nil {
				one.quiet = false // when it is loaded, it works
			}
		}
		l.listed = s.clock.Now()
		maps.DeleteFunc(l.models, func(name string, _ *llamaModel) bool { return !slices.Contains(l.loaded, name) })
	}
	for _, name := range names {
		if l.models[name] == nil {
			if l.models == nil {
				l.models = make(map[string]*llamaModel)
			}
			l.models[name] = newLlamaModel(s, name)
			if since != 0 && !slices.Contains(before, name) {
				l.models[name].startAtZero(s, since)
			}
		}
		list = append(list, l.models[name])
	}
	return list
}

// collectAll sums up the reports of all loaded models. It skips a model that does not respond, which may just have been
// unloaded, unless no model responds.
func (l *llama) collectAll(ctx context.Context, s *Poller, list []*llamaModel) (*event.Aggregates, error) {
	if len(list) == 1 {
		return list[0].collect(ctx, s, l)
	}
	sum, answered, failed := &event.Aggregates{Interval: s.sinceReport()}, false, error(nil)
	for _, m := range list {
		part, err := m.collect(ctx, s, l)
		if err != nil {
			failed, l.propsAt = err, 0
			part = &event.Aggregates{}
			addEndpoint(part, m.firstPath(), err.Error())
		}
		answered = answered || err == nil
		addAggregates(sum, part, m.name)
		mergeEndpoints(sum, part, m.name)
	}
	if !answered {
		return nil, failed
	}
	sum.CacheHits = cacheHits(sum)
	if n := len(loaded(s.info.Models)); n > len(list) {
		addEndpoint(sum, "/slots of all models", fmt.Sprintf("only the first %d of %d are polled", len(list), n))
	}
	return sum, nil
}

// setResting reports whether models are not polled.
func (l *llama) setResting(s *Poller, list []*llamaModel) {
	l.resting = l.asleep || slices.ContainsFunc(list, func(m *llamaModel) bool { return m.quiet })
	switch {
	case s.engine.State != event.EngineReady:
	case l.resting:
		s.setState(event.EngineReady, resting)
	default:
		s.setState(event.EngineReady, "")
	}
}

// readState checks whether the model is loaded and whether it sleeps. Slots of a sleeping model must not be polled:
// that would wake it.
func (l *llama) readState(ctx context.Context, s *Poller) error {
	now := s.clock.Now()
	changed, loads := s.loads.takeChanges()
	if l.propsAt != 0 && !changed && !l.resting && now-l.propsAt < event.Time(propsEvery) && s.engine.State == event.EngineReady {
		return nil
	}
	l.propsAt = now
	if s.info.Router {
		return readRouterModels(ctx, s, loads)
	}
	var props struct {
		Sleeping bool `json:"is_sleeping"`
		Slots    int  `json:"total_slots"`
	}
	err := s.client.JSON(ctx, "/props", &props)
	if fetch.HasStatus(err, http.StatusServiceUnavailable) {
		s.setState(event.EngineLoading, "")
		return nil
	}
	if err != nil {
		return err
	}
	// Earlier requests were rejected: identify the server again, unless a request has woken it.
	if s.engine.State == event.EngineLoading && !l.asleep || s.info.rejected {
		s.identified = false
		s.setState(event.EngineReady, "")
		return nil
	}
	l.asleep = props.Sleeping
	if props.Slots > 0 {
		s.setSlots(props.Slots)
	}
	if l.asleep {
		s.setState(event.EnginePaused, asleep)
	} else if s.engine.State != event.EngineReady {
		s.setState(event.EngineReady, "")
	}
	return nil
}

// asleep is the reason of the state of an engine whose models all sleep.
const asleep = "asleep until the next request"

// nextToken is an object, or an array with one object, depending on the version.
type nextToken struct {
	Decoded int   `json:"n_decoded"`
	More    *bool `json:"has_next_token"` // false after the end of a request; still true if it was cut off
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *nextToken) UnmarshalJSON(raw []byte) error {
	type plain nextToken
	list := make([]plain, 1)
	into := any(&list[0])
	if raw[0] == '[' {
		into = &list
	}
	err := json.Unmarshal(raw, into)
	if len(list) > 0 {
		*n = nextToken(list[0])
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) { // an error from here would end the list of slots
		n.Decoded = math.MaxInt // which is counted as malformed, and left out
		return nil
	}
	return err
}

// slot is a slot as the server reports it.
type slot struct {
	ID          int       `json:"id"`
	Context     int       `json:"n_ctx"`
	Processing  bool      `json:"is_processing"`
	Task        int64     `json:"id_task"`
	Tokens      int       `json:"n_prompt_tokens"` // in the cache, generated tokens included
	Processed   int       `json:"n_prompt_tokens_processed"`
	Cached      int       `json:"n_prompt_tokens_cache"`
	Next        nextToken `json:"next_token"`
	Speculative bool      `json:"speculative"`
	Params      struct {
		Predict int `json:"n_predict"`
	} `json:"params"`
}

// readRouterModels reads which models of a router are loaded. While none is loaded and one is loading, the engine is in
// state loading.
func readRouterModels(ctx context.Context, s *Poller, loads bool) error {
	info, err := Identify(ctx, s.client)
	if err != nil {
		return err
	}
	info.Sleeps, info.MetricsWake = s.info.Sleeps, s.info.MetricsWake
	s.info = info
	now := loaded(info.Models)
	s.setModels(now)
	switch {
	case loads && len(now) == 0:
		s.setState(event.EngineLoading, "")
	case len(now) == 0 && slices.ContainsFunc(info.Models, func(m Model) bool { return m.Asleep }):
		s.setState(event.EnginePaused, asleep)
	case s.engine.State != event.EngineReady:
		s.setState(event.EngineReady, "")
	}
	return nil
}
