package plain

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui"
)

const ms = event.Time(time.Millisecond)

// played is a session that receives test events.
type played struct {
	*store.Store
	now event.Time
}

func play() *played {
	p := &played{now: ms}
	p.Store = store.New(store.Options{Now: func() event.Time { return p.now }, Targets: store.Targets{TTFT: 20 * time.Millisecond}})
	return p
}

func (p *played) at(after event.Time, e event.Event) {
	p.now += after
	e.At, e.Layer = p.now, -1
	p.Emit(e)
}

// served plays one request: queue 3 ms, prompt 30 ms, first token 2 ms, and a token every ms, one of them late.
func (p *played) served(id event.RequestID, label string) {
	p.at(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Label: label}})
	p.at(3*ms, event.Event{Kind: event.KindStage, Stage: event.StageQueue, Req: id, Dur: int64(3 * ms)})
	p.at(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	p.at(30*ms, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: id, Dur: int64(30 * ms), N: 10})
	p.at(2*ms, event.Event{Kind: event.KindStage, Stage: event.StageFirst, Req: id, Dur: int64(2 * ms), N: 1})
	for i := range int32(40) {
		gap := ms
		if i == 30 {
			gap = 50 * ms
		}
		p.at(gap, event.Event{Kind: event.KindToken, Req: id, Index: i, N: 1, Text: "x"})
	}
}

func (p *played) ended(id event.RequestID) {
	p.at(0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 10, Generated: 40}})
}

// newTestPrinter returns a printer on a session, and a function that returns its output since the last call.
func newTestPrinter(p *played, states *[]alert.Status) (*printer, func() string) {
	var out bytes.Buffer
	sp := newPrinter(Config{
		Sessions: ui.One(ui.Session{Snapshots: p.Snapshot}),
		Alerts:   func() []alert.Status { return *states }, Output: &out,
	})
	return sp, func() string { defer out.Reset(); return out.String() }
}

func TestEventsArePrinted(t *testing.T) {
	p := play()
	var states []alert.Status
	sp, printed := newTestPrinter(p, &states)
	p.at(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: event.CapTokens | event.CapQueue, State: event.EngineReady}})
	sp.poll()
	if got := printed(); got != "engine native: ready\n" {
		t.Errorf("at the beginning: %q", got)
	}
	sp.poll()
	if got := printed(); got != "" {
		t.Errorf("without an event: %q", got)
	}
	p.served(1, "chat")
	sp.poll()
	got := printed()
	for _, want := range []string{
		"request 1, chat: running", "request 1: time to first token 36.0 ms: queue 3.00 ms, prompt 30.0 ms, first token 2.00 ms, other 1.00 ms. It missed the target of 20.0 ms",
		"stall: request 1 waited 50.0 ms for token 30, ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not printed:\n%s", want, got)
		}
	}
	p.ended(1)
	states = []alert.Status{{Name: "slow", When: "ttft_p99 > 20 ms", State: alert.Firing, Value: "36 ms"}}
	sp.poll()
	sp.poll()
	got = printed()
	for _, want := range []string{
		"request 1: finished (stop), 40 tokens in 124 ms, ", "token gaps 1.01 ms at the median, longest 50.0 ms, 1 stall\n",
		"alert slow is firing: 36 ms, condition ttft_p99 > 20 ms\n",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not printed once:\n%s", want, got)
		}
	}
	states[0].State = alert.Resolved
	sp.poll()
	if got := printed(); got != "alert slow has resolved: 36 ms\n" {
		t.Errorf("then: %q", got)
	}
}

// Number keys print sections, and space pauses.
func TestKeys(t *testing.T) {
	p := play()
	var states []alert.Status
	sp, printed := newTestPrinter(p, &states)
	p.at(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", Caps: event.CapTokens | event.CapQueue, State: event.EngineReady}})
	p.served(1, "chat")
	p.ended(1)
	for key, want := range map[byte]string{
		'1': "overview:\nengine native: ready\nsummary: ready, 0 running, 0 queued, 1 finished, decode ",
		'2': "requests:\n1 request, the newest first\nrequest 1, chat: finished, 40 tokens, time to first token 36.0 ms",
		'3': "request:\nrequest 1, chat: finished, 10 prompt tokens\nrequest 1: time to first token 36.0 ms: ",
		'4': "latency:\ntime to first token: 36.", '5': "experts:\nno router picks", '6': "system:\nno data", '7': "engines: 1\nengine native",
		'?': "keys: 1 overview, 2 requests, ", 'a': "no alert is set\n", 'x': "",
	} {
		quit := sp.handleKey(key)
		if got := printed(); quit || !strings.HasPrefix(got, want) {
			t.Errorf("%c: %q, want %q", key, got, want)
		}
	}
	sp.handleKey(' ')
	p.served(2, "chat")
	sp.poll()
	if got := printed(); strings.Contains(got, "request 2") || !strings.HasPrefix(got, "paused") {
		t.Errorf("while paused: %q", got)
	}
	if sp.handleKey(' '); !strings.Contains(printed(), "request 2") {
		t.Error("events during the pause are not printed on resume")
	}
	if !sp.handleKey('q') || !sp.handleKey(3) {
		t.Error("q and ctrl+c do not quit")
	}
}

// The number of lines per poll is bounded.
func TestManyRequestsAreBounded(t *testing.T) {
	p := play()
	var states []alert.Status
	sp, printed := newTestPrinter(p, &states)
	sp.poll()
	printed()
	for id := event.RequestID(1); id <= 50; id++ {
		p.at(ms, event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{}})
	}
	sp.poll()
	got := printed()
	if n := strings.Count(got, ": waiting"); n != maxLines || !strings.Contains(got, "and 42 other requests have begun") {
		t.Errorf("%d of 50 requests are printed:\n%s", n, got)
	}
}

// A lost connection is reported with its reason.
func TestChangesOfAConnection(t *testing.T) {
	p := play()
	var states []alert.Status
	sp, printed := newTestPrinter(p, &states)
	p.at(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "far", Remote: event.Remote{Address: "unix:a", Link: event.LinkDisconnected, Reason: "no such file", Since: 1}}})
	sp.poll()
	if got := printed(); !strings.HasPrefix(got, "connection to unix:a: disconnected, no such file\n") {
		t.Errorf("%q", got)
	}
}

// An attached engine is only reported from attaching on; stalls are combined.
func TestChangesOfAnAttachedEngine(t *testing.T) {
	p := play()
	var states []alert.Status
	sp, printed := newTestPrinter(p, &states)
	p.at(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "far", State: event.EngineReady, Remote: event.Remote{Address: "tcp:host:1", Link: event.LinkConnected}}})
	p.served(1, "old")
	p.ended(1)
	sp.poll()
	if got := printed(); !strings.HasPrefix(got, "connection to tcp:host:1: connected\nengine far: ready\nwarning: TTFT 36.0 ms, ") || strings.Contains(got, "request 1") {
		t.Errorf("at the beginning: %q", got)
	}
	for id := event.RequestID(2); id <= 4; id++ {
		p.served(id, "new")
		p.ended(id)
		sp.poll()
	}
	p.at(5000*ms, event.Event{Kind: event.KindLog, Text: "later"})
	sp.poll()
	got := printed()
	if strings.Contains(got, "request 1:") || strings.Count(got, ": finished") != 3 {
		t.Errorf("the changes are:\n%s", got)
	}
	if strings.Count(got, "stall: ") != 1 || strings.Count(got, "2 stalls, the longest: ") != 1 {
		t.Errorf("the stalls are printed as:\n%s", got)
	}
}

// TestSlotsAreNoTotal checks that of requests polled from slots the finished ones are a lower bound.
func TestSlotsAreNoTotal(t *testing.T) {
	p := play()
	p.at(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "llama.cpp", Caps: event.CapAggregates, State: event.EngineReady}})
	for _, slot := range []event.Slot{{Request: 1, Generated: 3}, {}} {
		p.at(1000*ms, event.Event{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: int64(time.Second), Slots: []event.Slot{slot}}})
	}
	if got := Summary(p.Snapshot()); !strings.Contains(got, "at least 1 finished: polls miss requests") {
		t.Errorf("summary %q", got)
	}
}

// TestLinesArePlain checks that text from outside is sanitised and that no line has control codes or drawing
// characters.
func TestLinesArePlain(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x1b[2J\u009b5;5H\r\nnew line\u202e"
	p := play()
	states := []alert.Status{{Name: evil, State: alert.Firing, Value: "1"}}
	sp, printed := newTestPrinter(p, &states)
	sp.poll()
	p.at(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: evil, State: event.EngineFailed, Reason: evil, Remote: event.Remote{Address: evil, Link: event.LinkConnected}}})
	p.at(0, event.Event{Kind: event.KindModel, Data: &event.Model{Name: evil, Architecture: evil}})
	p.at(0, event.Event{Kind: event.KindHost, Data: &event.Host{NoGPU: evil, GPUs: []event.GPU{{Name: evil}}}})
	p.served(1, evil)
	p.at(0, event.Event{Kind: event.KindRequest, Req: 1, State: event.StateFailed, Data: &event.Outcome{Reason: evil}})
	sp.poll()
	sp.printSummaries()
	for k := range byte(128) {
		if k != 'q' && k != 3 {
			sp.handleKey(k)
		}
	}
	for _, r := range printed() {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x2500 && r < 0x25a0 || r == 0x202e {
			t.Fatalf("character %U is written", r)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	cause := errors.New("closed")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := play()
	var out bytes.Buffer
	cfg := Config{Sessions: func() []ui.Session { cancel(cause); return []ui.Session{{Snapshots: p.Snapshot}} }, Interval: DefaultInterval, Output: &out, Note: "a note"}
	if err := Run(ctx, cfg); !errors.Is(err, cause) || !strings.Contains(out.String(), "\na note\n") {
		t.Errorf("%v after %q", err, out.String())
	}
}

// A failing output ends Run.
func TestRunEndsWithItsOutput(t *testing.T) {
	if err := Run(t.Context(), Config{Sessions: func() []ui.Session { return nil }, Interval: DefaultInterval, Output: closedWriter{}}); !errors.Is(err, errClosed) {
		t.Errorf("ended with %v", err)
	}
}

var errClosed = errors.New("closed")

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errClosed }
