package sdk

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// watcher is a store fed by the client of llmtop.
type watcher struct {
	t testing.TB
	*store.Store
	client *socket.Client
}

func watch(t testing.TB, address, token string) watcher {
	t.Helper()
	clock := engine.NewClock()
	client, err := socket.Dial(address, token, clock)
	if err != nil {
		t.Fatal(err)
	}
	w := watcher{t, store.New(store.Options{Now: clock.Now, Wall: time.Now}), client}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	running.Go(func() { _ = client.Run(ctx, w) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	w.await("the connection", func(s *store.Snapshot) bool { return s.Engine.Remote.Link == event.LinkConnected })
	return w
}

// await waits until a snapshot satisfies a condition.
func (w watcher) await(what string, condition func(*store.Snapshot) bool) *store.Snapshot {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s := w.Snapshot()
		if condition(s) {
			return s
		}
		if time.Now().After(end) {
			w.t.Fatalf("timed out waiting for %s; engine %+v, counts %+v, dropped %v", what, s.Engine, s.Counts, s.Drops)
		}
	}
}

// The work of the example engine.
const (
	plannedRequests = 6
	plannedTokens   = 50
)

// shown compares llmtop's data of an engine with its work, and with the times on the wire.
func shown(t *testing.T, binary string) {
	address := "ADDRESS=unix:" + Socket(t)
	p := Start(t, binary, address, "REQUESTS=6", "TOKENS=50", "THREADS=2")
	wire := Connect(t, p.Address, check)
	wire.Read("synced")
	w := watch(t, p.Address, "")
	p.Go()
	wire.Read("log")
	p.Done()
	s := w.await("the end of the work", func(s *store.Snapshot) bool { return len(s.Log) > 0 && s.Experts != nil && decoded(s) })
	checkEngine(t, s, p.PID())
	checkTotals(t, s)
	for _, r := range s.Requests {
		checkRequest(t, wire, r)
	}
	p.Kill()
	w.await("the loss of the connection", func(s *store.Snapshot) bool { return s.Engine.Remote.Link == event.LinkDisconnected })
	next := Start(t, binary, address)
	s = w.await("the next run", func(s *store.Snapshot) bool {
		return s.Engine.Remote.Link == event.LinkConnected && s.Engine.PID == next.PID()
	})
	if r := s.Engine.Remote; r.Restarts != 1 || r.Malformed != 0 || r.Missed != 0 {
		t.Errorf("connection %+v", r)
	}
}

// decoded reports whether the last table of router picks has been received.
func decoded(s *store.Snapshot) bool {
	return s.Experts.Hits(metric.Session, metric.Decode).Tokens == plannedRequests*plannedTokens
}

func checkEngine(t *testing.T, s *store.Snapshot, pid int) {
	t.Helper()
	e, m := &s.Engine, &s.Model
	caps := event.CapStages | event.CapTokens | event.CapExperts | event.CapKV | event.CapSteps | event.CapQueue | event.CapCounters
	if !strings.HasPrefix(e.Name, "example-c") || e.Version != "1.2" || e.PID != pid || e.Caps != caps || e.State != event.EngineReady {
		t.Errorf("engine %+v", e)
	}
	if m.Name != "tiny" || m.Layers != 2 || m.Experts != 4 || m.ExpertsUsed != 2 {
		t.Errorf("model %+v", m)
	}
	if r := e.Remote; r.Missed != 0 || r.Malformed != 0 || s.Drops.Total() != 0 {
		t.Errorf("connection %+v, dropped %v", r, s.Drops)
	}
}

func checkTotals(t *testing.T, s *store.Snapshot) {
	t.Helper()
	const n = plannedRequests
	c := &s.Counts
	if c.Queued != 0 || c.Running != 0 || c.Finished != n || c.PromptTokens != 4*n || c.CachedTokens != n || c.GeneratedTokens != n*plannedTokens || c.Steps != n*plannedTokens {
		t.Errorf("counts %+v", c)
	}
	if len(s.Requests) != n {
		t.Errorf("%d requests are kept", len(s.Requests))
	}
	if s.KV.Used != 16 || s.KV.Total != 4096 {
		t.Errorf("KV cache %+v", s.KV)
	}
	if s.Log[0].Text != "all is done" {
		t.Errorf("log %+v", s.Log)
	}
	prompt, decode := s.Experts.Hits(metric.Session, metric.Prompt), s.Experts.Hits(metric.Session, metric.Decode)
	if want := []uint64{0, 0, 0, 0, n, n, n, n}; !slices.Equal(prompt.Counts, want) || prompt.Tokens != 2*n {
		t.Errorf("router picks for %d prompt tokens: %v, want %v", prompt.Tokens, prompt.Counts, want)
	}
	if want := []uint64{0, n * plannedTokens, 0, n * plannedTokens, 0, 0, 0, 0}; !slices.Equal(decode.Counts, want) {
		t.Errorf("router picks while decoding: %v, want %v", decode.Counts, want)
	}
}

// checkRequest compares a request with the plan, and each of its times with the stamps on the wire.
func checkRequest(t *testing.T, wire *Reader, r *store.Request) {
	t.Helper()
	if r.State != event.StateFinished || r.Reason != "length" || r.Group != `adapter-"x"` || r.Label != "chat" || r.MaxTokens != 64 {
		t.Errorf("request %d is %v, %q, group %q, label %q, at most %d tokens", r.ID, r.State, r.Reason, r.Group, r.Label, r.MaxTokens)
	}
	if r.PromptTokens != 4 || r.CachedTokens != 1 || r.Generated != plannedTokens || len(r.Tokens) != plannedTokens {
		t.Errorf("request %d has %d prompt tokens, %d cached, %d generated, %d kept", r.ID, r.PromptTokens, r.CachedTokens, r.Generated, len(r.Tokens))
	}
	stamps := stampsOf(wire, r.ID)
	tokens := stamps.tokens
	if len(tokens) != plannedTokens {
		t.Fatalf("%d tokens of request %d are on the wire", len(tokens), r.ID)
	}
	same(t, r, "TTFT", r.TTFT, tokens[0]-stamps.queued)
	same(t, r, "queue time", r.STIL, stamps.stages["queue"])
	same(t, r, "prefill", r.Prefill, stamps.stages["prompt"])
	same(t, r, "decode", r.Decode, tokens[len(tokens)-1]-tokens[0])
	other := tokens[0] - stamps.queued
	for _, p := range r.Parts[:len(r.Parts)-1] {
		if took := stamps.stages[p.Stage.String()]; int64(p.Dur) != took {
			t.Errorf("request %d: %v takes %v, on the wire %d ns", r.ID, p.Stage, p.Dur, took)
		}
		other -= int64(p.Dur)
	}
	if last := r.Parts[len(r.Parts)-1]; len(r.Parts) != 4 || last.Stage != event.StageNone || int64(last.Dur) != other {
		t.Errorf("request %d: parts %+v, %d ns are others", r.ID, r.Parts, other)
	}
	for i, k := range r.Tokens {
		split := event.Split{Embed: 10, Attention: 200, Router: 30, Experts: 400, Head: 50, Sample: 60}
		step := uint64(r.ID-1)*plannedTokens + uint64(i) + 1
		if int(k.Index) != i || k.ID != int32(1000+i) || k.Step != step || k.Split != split || !k.HasLP || k.LogP != -0.25 {
			t.Errorf("request %d, token %d: %+v", r.ID, i, k)
		}
		if i > 0 && k.Gap != tokens[i]-tokens[i-1] {
			t.Errorf("request %d: gap of %d ns before token %d, on the wire %d ns", r.ID, k.Gap, i, tokens[i]-tokens[i-1])
		}
	}
}

// stamps holds the times of a request on the wire, in ns.
type stamps struct {
	queued int64
	tokens []int64
	stages map[string]int64
}

func stampsOf(wire *Reader, id event.RequestID) stamps {
	s := stamps{stages: map[string]int64{}}
	at := func(l Line) int64 { return int64(l.Keys["a"].(float64)) }
	for _, l := range wire.Of("req", float64(id)) {
		if l.Keys["state"] == "queued" {
			s.queued = at(l)
		}
	}
	for _, l := range wire.Of("tok", float64(id)) {
		s.tokens = append(s.tokens, at(l))
	}
	for _, l := range wire.Of("stage", float64(id)) {
		s.stages[l.Keys["stage"].(string)] += int64(l.Keys["dur"].(float64))
	}
	return s
}

// same compares a reading in seconds with ns.
func same(t *testing.T, r *store.Request, what string, got event.Reading, ns int64) {
	t.Helper()
	if !got.OK() || got.V != float64(ns)/1e9 {
		t.Errorf("request %d: %s is %v, on the wire %d ns", r.ID, what, got, ns)
	}
}
