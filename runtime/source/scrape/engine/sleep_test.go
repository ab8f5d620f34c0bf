package engine

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// sleeper is a llama-server whose model may sleep.
type sleeper struct {
	*fake
	asleep, busy  atomic.Bool
	failing, down atomic.Bool  // it does not answer about its state, or at all
	touched       atomic.Int32 // requests that wake the model, or keep it awake
	asked         atomic.Int32 // requests for its state
}

// newSleeper starts a llama-server of a build, with metrics or without. metricsWake: reading them counts as work.
func newSleeper(t *testing.T, props string, metrics, metricsWake bool) *sleeper {
	s := &sleeper{fake: newFake(t, nil)}
	busy := func() int {
		if s.busy.Load() {
			return 1
		}
		return 0
	}
	s.setHandler(func(w http.ResponseWriter, r *http.Request) {
		text := func(page string) { _, _ = fmt.Fprint(w, page) }
		switch {
		case s.down.Load(), s.failing.Load() && r.URL.Path == "/props":
			w.WriteHeader(http.StatusInternalServerError)
		case r.URL.Path == "/v1/models":
			text(modelList("llamacpp"))
		case r.URL.Path == "/props":
			s.asked.Add(1)
			text(strings.NewReplacer("ASLEEP", fmt.Sprint(s.asleep.Load()), "METRICS", fmt.Sprint(metrics)).Replace(props))
		case r.URL.Path == "/metrics" && metrics:
			if metricsWake {
				s.touched.Add(1)
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			text(fmt.Sprintf("llamacpp:tokens_predicted_total 100\nllamacpp:requests_processing %d\nllamacpp:requests_deferred 0\n", busy()))
		case r.URL.Path == "/slots":
			s.touched.Add(1)
			text(fmt.Sprintf(`[{"id":0,"n_ctx":64,"is_processing":%t,"id_task":1,"next_token":{"n_decoded":3}}]`, busy() == 1))
		default:
			http.NotFound(w, r)
		}
	})
	return s
}

// The answers of /props.
const (
	oldBuild = `{"build_info":"b9760-6ee0f6579","is_sleeping":ASLEEP,"endpoint_slots":true,"endpoint_metrics":METRICS,"default_generation_settings":{"n_ctx":64}}`
	noNumber = `{"build_info":"b1-6ee0f6579","is_sleeping":ASLEEP,"endpoint_slots":true,"endpoint_metrics":METRICS,"default_generation_settings":{"n_ctx":64}}`
	newBuild = `{"build_info":"b10582-e85caa81e","is_sleeping":ASLEEP,"endpoint_slots":true,"endpoint_metrics":METRICS,"default_generation_settings":{"n_ctx":64}}`
	noSleep  = `{"build_info":"b7000-6ee0f6579","endpoint_slots":true,"endpoint_metrics":METRICS,"default_generation_settings":{"n_ctx":64}}`
)

// after waits until the state was asked for n more times, and returns how often the model was touched meanwhile.
func (s *sleeper) after(t *testing.T, n int32) int {
	before, from := s.touched.Load(), s.asked.Load()
	eventtest.Wait(t, "polls", func() bool { return s.asked.Load() >= from+n })
	return int(s.touched.Load() - before)
}

// TestModelsAreLeftAlone: a model that may sleep is neither woken nor kept awake by any poll: not at the first contact,
// while it is idle, after its work, nor after the connection has failed. Its next work after a sleep is seen.
func TestModelsAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		props                string
		metrics, metricsWake bool
	}{
		"old build":                 {oldBuild, true, true},
		"old build without metrics": {oldBuild, false, false},
		"build without a number":    {noNumber, true, true},
		"new build":                 {newBuild, true, false},
		"new build without metrics": {newBuild, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSleeper(t, c.props, c.metrics, c.metricsWake)
			s.asleep.Store(true)
			w := startPoller(t, Options{Address: s.URL})
			waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.State == event.EnginePaused })
			eventtest.Wait(t, "polls", func() bool { return s.asked.Load() > 1 })
			if c.metricsWake || !c.metrics {
				waitFor(w, event.KindAggregates, 0, func(p *event.Aggregates) bool {
					why, _ := endpoint(p, "/slots")
					return why == sleeps && !p.Running.OK() && !p.Generated.OK()
				})
			}
			if n := s.touched.Load(); n > 0 {
				t.Errorf("a sleeping model was woken %d times", n)
			}
			s.failing.Store(true)
			w.waitForLink(event.LinkDisconnected, "", 0)
			s.failing.Store(false)
			if n := s.after(t, 5); n > 0 {
				t.Errorf("after the connection had failed, a sleeping model was woken %d times", n)
			}
			n := len(w.log.OfKind(event.KindAggregates))
			s.busy.Store(true)
			s.asleep.Store(false) // a request has come
			if c.metricsWake || !c.metrics {
				_, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.V == 1 && len(p.Slots) == 1 })
				s.busy.Store(false)
				_, n = waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Running.OK() && p.Running.V == 0 })
				waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.State == event.EngineReady && e.Reason == resting })
				if n := s.after(t, 5); n > 0 {
					t.Errorf("an idle model was touched %d times", n)
				}
				waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return !p.Running.OK() && p.AtLeast })
				s.failing.Store(true)
				w.waitForLink(event.LinkDisconnected, "", len(w.log.OfKind(event.KindEngine)))
				s.failing.Store(false)
				if n := s.after(t, 5); n > 0 {
					t.Errorf("after the connection had failed, an idle model was touched %d times", n)
				}
				s.asleep.Store(true)
				waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool {
					why, _ := endpoint(p, "/slots")
					return why == sleeps
				})
			}
		})
	}
}

// TestSlotsAfterAFailure: the slots of an idle model are not read again with each new connection, which would keep it
// awake, unless the server was restarted.
func TestSlotsAfterAFailure(t *testing.T) {
	s := newSleeper(t, newBuild, true, false)
	w := startPoller(t, Options{Address: s.URL})
	reports := 0
	for range 3 {
		_, reports = waitFor(w, event.KindAggregates, reports+3, func(p *event.Aggregates) bool { return len(p.Slots) == 1 && p.Running.V == 0 })
		links := len(w.log.OfKind(event.KindEngine))
		s.down.Store(true)
		w.waitForLink(event.LinkDisconnected, "", links)
		s.down.Store(false)
	}
	if n := s.touched.Load(); n != 1 {
		t.Errorf("slots were read %d times, want once", n)
	}
}

// TestModelsThatNeverSleep are polled while they are idle, and so are others if the user wants that.
func TestModelsThatNeverSleep(t *testing.T) {
	for name, c := range map[string]struct {
		props string
		opt   Options
	}{
		"a build without sleep":  {noSleep, Options{}},
		"started without sleep":  {oldBuild, Options{NeverSleeps: func() bool { return true }}},
		"kept awake by the user": {oldBuild, Options{KeepAwake: true}},
	} {
		s := newSleeper(t, c.props, false, false)
		c.opt.Address = s.URL
		w := startPoller(t, c.opt)
		waitFor(w, event.KindAggregates, 3, func(p *event.Aggregates) bool { return p.Running.OK() && p.Running.V == 0 })
		s.busy.Store(true)
		if p, _ := waitFor(w, event.KindAggregates, 3, func(p *event.Aggregates) bool { return p.Running.V == 1 }); p == nil {
			t.Error(name)
		}
	}
}

// TestRouterLeavesModelsAlone: of a router, the idle model is left alone until it has slept; the counters of a model that
// slept go on.
func TestRouterLeavesModelsAlone(t *testing.T) {
	f := newFake(t, map[string]string{"/props": strings.Replace(routerProps, "b10582", "b9760", 1)})
	list := func(status string) {
		f.setPage("/v1/models", fmt.Sprintf(`{"object":"list","data":[{"id":"a","owned_by":"llamacpp","status":{"value":%q}},`+
			`{"id":"b","owned_by":"llamacpp","status":{"value":"unloaded"}},{"id":"c","owned_by":"llamacpp","status":{"value":"sleeping"}}]}`, status))
	}
	tokens := func(n, running int) {
		f.setPage("/metrics?model=a", fmt.Sprintf("llamacpp:tokens_predicted_total %d\nllamacpp:requests_processing %d\nllamacpp:requests_deferred 0\n", n, running))
		f.setPage("/slots?model=a", fmt.Sprintf(`[{"id":0,"n_ctx":64,"is_processing":%t,"id_task":%d,"next_token":{"n_decoded":3}}]`, running > 0, n))
	}
	list("loaded")
	tokens(100, 0)
	w := startPoller(t, Options{Address: f.URL})
	waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.State == event.EngineReady && e.Reason == resting })
	metrics, slots, from := f.requestCount("/metrics"), f.requestCount("/slots"), f.requestCount("/v1/models")
	eventtest.Wait(t, "polls", func() bool { return f.requestCount("/v1/models") > from+5 })
	if f.requestCount("/metrics") != metrics || f.requestCount("/slots") != slots || metrics != 1 || slots != 1 {
		t.Errorf("an idle model: %d reads of metrics, %d of slots", f.requestCount("/metrics"), f.requestCount("/slots"))
	}
	list("sleeping")
	waitFor(w, event.KindEngine, 0, func(e *event.EngineInfo) bool { return e.State == event.EnginePaused && e.Reason == asleep })
	n := len(w.log.OfKind(event.KindAggregates))
	tokens(140, 1)
	list("loaded")
	p, _ := waitFor(w, event.KindAggregates, n, func(p *event.Aggregates) bool { return p.Generated.OK() && p.Generated.V > 0 })
	if p.Generated.V != 43 { // 40 of requests that have ended, 3 of the one in the slot
		t.Errorf("%v tokens since the model fell asleep, want 43", p.Generated.V)
	}
}
