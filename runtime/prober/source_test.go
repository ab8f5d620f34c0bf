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
	"github.com/llmtop/llmtop/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a server that counts what it is asked for.
type served struct {
	*httptest.Server
	live, most, asked atomic.Int32
	fails             atomic.Bool
	body              atomic.Value // of the last request
	rogue             atomic.Value // http.HandlerFunc: answers in place of it; nil: does not
}

func serve(t *testing.T) *served {
	s := &served{}
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
		s.asked.Add(1)
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
func start(t *testing.T, s *served) (*Source, *eventtest.Log) {
	return begin(t, s, func(*Source) {})
}

// begin is start with something changed before.
func begin(t *testing.T, s *served, change func(*Source)) (*Source, *eventtest.Log) {
	p := New(Options{Address: s.URL, Clock: runtime.NewClock()})
	p.opt.Every, p.first = time.Millisecond, time.Millisecond
	p.rest = 0
	change(p)
	log := new(eventtest.Log)
	eventtest.Run(t, p, log)
	return p, log
}

var connected = event.Event{Kind: event.KindEngine, Data: &event.Engine{Name: "vLLM", State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected}}}

func report(r *event.Report) event.Event { return event.Event{Kind: event.KindReport, Data: r} }

// TestProbes are sent one after the other, marked, under numbers of their own, and only once somebody has told that the server is there.
func TestProbes(t *testing.T) {
	s := serve(t)
	p, log := start(t, s)
	if s.asked.Load() != 0 {
		t.Error("a server was probed that nobody has met")
	}
	first := p.opt.Shared.Next()
	p.Beside(event.Discard{}).Emit(connected)
	ended := func() (n int) {
		for _, e := range log.Of(event.KindRequest) {
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
	for _, e := range log.Of(event.KindRequest) {
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
	if n := len(log.Of(event.KindEngine)) + len(log.Of(event.KindModel)); n != 0 {
		t.Errorf("a probe told %d times what the server is", n)
	}
	if body, _ := s.body.Load().(string); !strings.Contains(body, `"max_tokens":8`) {
		t.Errorf("asked for %s", body)
	}
}

// TestMayAsk holds probes back from servers that are away, asleep, busy, or would load a model for it.
func TestMayAsk(t *testing.T) {
	engine := func(name string, state event.EngineState, link event.Link) event.Event {
		return event.Event{Data: &event.Engine{Name: name, State: state, Remote: event.Remote{Link: link}}}
	}
	busy := []event.Slot{{Request: 3}, {Slot: 1, Request: 4}}
	for name, c := range map[string]struct {
		told []event.Event
		want bool
	}{
		"nothing is known":     {nil, false},
		"ready":                {[]event.Event{connected}, true},
		"away":                 {[]event.Event{engine("vLLM", event.EngineReady, event.LinkDisconnected)}, false},
		"asleep":               {[]event.Event{engine("llama.cpp", event.EnginePaused, event.LinkConnected)}, false},
		"others wait":          {[]event.Event{connected, report(&event.Report{Waiting: event.From(2)})}, false},
		"nobody waits":         {[]event.Event{connected, report(&event.Report{Waiting: event.From(0), Running: event.From(9)})}, true},
		"no slot is free":      {[]event.Event{connected, report(&event.Report{Slots: busy})}, false},
		"a slot is free":       {[]event.Event{connected, report(&event.Report{Slots: append(busy, event.Slot{Slot: 2})})}, true},
		"Ollama without model": {[]event.Event{engine("Ollama", event.EngineReady, event.LinkConnected)}, false},
		"Ollama with a model": {
			[]event.Event{engine("Ollama", event.EngineReady, event.LinkConnected), {Data: &event.Model{Name: "qwen3"}}},
			true,
		},
	} {
		p := New(Options{Every: time.Second})
		for _, e := range c.told {
			p.Beside(event.Discard{}).Emit(e)
		}
		if got := p.mayAsk(); got != c.want {
			t.Errorf("%s: may ask is %v", name, got)
		}
	}
}

// TestPause leaves slow servers nine tenths of the time, and failing ones alone for longer and longer.
func TestPause(t *testing.T) {
	p := New(Options{Every: 10 * time.Second})
	for _, c := range []struct {
		took     time.Duration
		failures int
		want     time.Duration
	}{
		{time.Millisecond, 0, 10 * time.Second},
		{4 * time.Second, 0, 36 * time.Second},
		{time.Millisecond, 1, 20 * time.Second},
		{time.Millisecond, 3, 80 * time.Second},
		{time.Millisecond, 60, longestWait},
		{2 * time.Minute, 60, 18 * time.Minute},
	} {
		if got := p.pause(c.took, c.failures); got != c.want {
			t.Errorf("after %v and %d failures: %v, want %v", c.took, c.failures, got, c.want)
		}
	}
}

// TestFailing tells of a server that fails, as failed requests and once in words.
func TestFailing(t *testing.T) {
	s := serve(t)
	s.fails.Store(true)
	p, log := start(t, s)
	p.Beside(event.Discard{}).Emit(connected)
	eventtest.Wait(t, "failures", func() bool { return s.asked.Load() >= 3 })
	s.fails.Store(false)
	eventtest.Wait(t, "an answer", func() bool {
		for _, e := range log.Of(event.KindRequest) {
			if e.State == event.StateFinished {
				return true
			}
		}
		return false
	})
	if said := log.Of(event.KindLog); len(said) != 1 || !strings.Contains(said[0].Text, "out of memory") {
		t.Errorf("said %v", said)
	}
}

// TestRecognised knows a probe by its seed, once it has been told of.
func TestRecognised(t *testing.T) {
	var s Shared
	if _, own := s.Of(0); own {
		t.Error("without a probe, a request was taken for one")
	}
	s.begin(77)
	if id, own := s.Of(77); !own || id != 0 {
		t.Errorf("#%d %v before it was told of", id, own)
	}
	m := &marked{sink: event.Discard{}, shared: &s}
	m.Emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, Req: 1})
	if id, own := s.Of(77); !own || id != 1 || s.Next() != 2 {
		t.Errorf("#%d %v", id, own)
	}
	if _, own := s.Of(78); own {
		t.Error("somebody else's request was taken for a probe")
	}
}
