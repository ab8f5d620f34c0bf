package prober

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer counts its requests.
type fakeServer struct {
	*httptest.Server
	live, most, requests atomic.Int32
	fails                atomic.Bool
	body                 atomic.Value // of the last request
	rogue                atomic.Value // http.HandlerFunc that replaces the response; nil: none
}

func serve(t *testing.T) *fakeServer {
	s := &fakeServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			_, _ = io.WriteString(w, `{"data":[{"id":"m","owned_by":"vllm"}]}`)
			return
		}
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		s.most.Store(max(s.most.Load(), s.live.Add(1)))
		defer s.live.Add(-1)
		body, _ := io.ReadAll(r.Body)
		s.body.Store(string(body))
		s.requests.Add(1)
		if answer, _ := s.rogue.Load().(http.HandlerFunc); answer != nil {
			answer(w, r)
			return
		}
		if s.fails.Load() {
			http.Error(w, "out of memory", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\"a\",\"token_ids\":[%d]}]}\n\n", i)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// start probes a server until the test ends.
func start(t *testing.T, s *fakeServer) (*Prober, *eventtest.Log) {
	return startWith(t, s, func(*Prober) {})
}

// startWith is start with a changed Prober.
func startWith(t *testing.T, s *fakeServer, change func(*Prober)) (*Prober, *eventtest.Log) {
	p := New(Options{Address: s.URL, Clock: engine.NewClock()})
	p.opt.Interval, p.checkEvery = time.Millisecond, time.Millisecond
	p.restFactor = 0
	change(p)
	log := new(eventtest.Log)
	eventtest.Run(t, p, log)
	return p, log
}

var connected = event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "vLLM", State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected}}}

func report(r *event.Aggregates) event.Event { return event.Event{Kind: event.KindAggregates, Data: r} }

// TestProbes: probes do not overlap, are marked, have unique IDs, and start only after the server was reported as
// ready.
func TestProbes(t *testing.T) {
	s := serve(t)
	p, log := start(t, s)
	if s.requests.Load() != 0 {
		t.Error("a server was probed that was not reported as ready")
	}
	first := p.opt.RequestIDs.Next()
	p.Observe(event.Tee{}).Emit(connected)
	ended := func() (n int) {
		for _, e := range log.OfKind(event.KindRequest) {
			if e.State == event.StateFinished {
				n++
			}
		}
		return n
	}
	eventtest.Wait(t, "probes", func() bool { return ended() >= 3 })
	if s.most.Load() != 1 {
		t.Errorf("%d probes at the same time", s.most.Load())
	}
	last := first
	for _, e := range log.OfKind(event.KindRequest) {
		if q, ok := e.Data.(*event.Request); ok {
			if !q.Probe || q.Label != Label || q.Prompt != "" || q.MaxTokens != Tokens || e.Req != last+1 {
				t.Errorf("#%d after #%d: %+v", e.Req, last, q)
			}
			last = e.Req
		}
		if o, ok := e.Data.(*event.Outcome); ok && e.State == event.StateFinished && (o.Generated != 3 || o.Prompt != 5) {
			t.Errorf("%+v", o)
		}
	}
	if n := len(log.OfKind(event.KindEngine)) + len(log.OfKind(event.KindModel)); n != 0 {
		t.Errorf("a probe emitted %d engine events", n)
	}
	if body, _ := s.body.Load().(string); !strings.Contains(body, `"max_tokens":8`) {
		t.Errorf("requested %s", body)
	}
}

// TestMayProbe: no probes to servers that are unreachable, asleep or busy, or that would have to load a model.
func TestMayProbe(t *testing.T) {
	engine := func(name string, state event.EngineState, link event.Link) event.Event {
		return event.Event{Data: &event.EngineInfo{Name: name, State: state, Remote: event.Remote{Link: link}}}
	}
	busy := []event.Slot{{Request: 3}, {Slot: 1, Request: 4}}
	for name, c := range map[string]struct {
		events []event.Event
		want   bool
	}{
		"nothing is known":     {nil, false},
		"ready":                {[]event.Event{connected}, true},
		"away":                 {[]event.Event{engine("vLLM", event.EngineReady, event.LinkDisconnected)}, false},
		"asleep":               {[]event.Event{engine("llama.cpp", event.EnginePaused, event.LinkConnected)}, false},
		"others wait":          {[]event.Event{connected, report(&event.Aggregates{Waiting: event.DerivedValue(2)})}, false},
		"no waiting request":   {[]event.Event{connected, report(&event.Aggregates{Waiting: event.DerivedValue(0), Running: event.DerivedValue(9)})}, true},
		"no slot is free":      {[]event.Event{connected, report(&event.Aggregates{Slots: busy})}, false},
		"a slot is free":       {[]event.Event{connected, report(&event.Aggregates{Slots: append(busy, event.Slot{Slot: 2})})}, true},
		"Ollama without model": {[]event.Event{engine("Ollama", event.EngineReady, event.LinkConnected)}, false},
		"Ollama with a model": {
			[]event.Event{engine("Ollama", event.EngineReady, event.LinkConnected), {Data: &event.Model{Name: "qwen3"}}},
			true,
		},
	} {
		p := New(Options{Interval: time.Second})
		for _, e := range c.events {
			p.Observe(event.Tee{}).Emit(e)
		}
		if got := p.mayProbe(); got != c.want {
			t.Errorf("%s: mayProbe returns %v", name, got)
		}
	}
}

// TestPause: slow servers get nine tenths of the time without probes, failing ones increasing pauses.
func TestPause(t *testing.T) {
	p := New(Options{Interval: 10 * time.Second})
	for _, c := range []struct {
		took     time.Duration
		failures int
		want     time.Duration
	}{
		{time.Millisecond, 0, 10 * time.Second},
		{4 * time.Second, 0, 36 * time.Second},
		{time.Millisecond, 1, 20 * time.Second},
		{time.Millisecond, 3, 80 * time.Second},
		{time.Millisecond, 60, maxBackoff},
		{2 * time.Minute, 60, 18 * time.Minute},
	} {
		if got := p.pause(c.took, c.failures); got != c.want {
			t.Errorf("after %v and %d failures: %v, want %v", c.took, c.failures, got, c.want)
		}
	}
}

// TestFailedProbes expects failed requests and one log line.
func TestFailedProbes(t *testing.T) {
	s := serve(t)
	s.fails.Store(true)
	p, log := start(t, s)
	p.Observe(event.Tee{}).Emit(connected)
	eventtest.Wait(t, "failures", func() bool { return s.requests.Load() >= 3 })
	s.fails.Store(false)
	eventtest.Wait(t, "an answer", func() bool {
		for _, e := range log.OfKind(event.KindRequest) {
			if e.State == event.StateFinished {
				return true
			}
		}
		return false
	})
	if logs := log.OfKind(event.KindLog); len(logs) != 1 || !strings.Contains(logs[0].Text, "out of memory") {
		t.Errorf("logs %v", logs)
	}
}

// TestProbeIsRecognised recognises a probe by its seed, once it has an ID.
func TestProbeIsRecognised(t *testing.T) {
	var s scrape.RequestIDs
	if _, own := s.Probe(0); own {
		t.Error("a request was taken for a probe without one")
	}
	s.SetSeed(77)
	if id, own := s.Probe(77); !own || id != 0 {
		t.Errorf("#%d %v before it had an ID", id, own)
	}
	m := probes(event.Tee{}, &s)
	m.Emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, Req: 1})
	if id, own := s.Probe(77); !own || id != 1 || s.Next() != 2 {
		t.Errorf("#%d %v", id, own)
	}
	if _, own := s.Probe(78); own {
		t.Error("another client's request was taken for a probe")
	}
}
