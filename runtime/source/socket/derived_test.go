package socket

import (
	"context"
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// retell returns a store that has received the events of an engine on its socket, and its snapshots after those for which
// look is true.
func retell(events []event.Event, look func(*event.Event) bool) (seen []*store.Snapshot) {
	now := event.Time(0)
	s := store.New(store.Options{Now: func() event.Time { return now }})
	for _, e := range events {
		now = max(now, e.At)
		s.Emit(e)
		if s.Drain(); look(&e) {
			seen = append(seen, s.Snapshot())
		}
	}
	return seen
}

// TestDerivedAgreesWithTheBuiltInEngine checks what is derived from the requests and tokens of the built-in engine against
// what its forward passes, dispatches and stages show. Its scheduler takes some of the time between passes.
func TestDerivedAgreesWithTheBuiltInEngine(t *testing.T) {
	load := func(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
		return native.OpenDemo(native.Options{Threads: 1, Context: 512, Slots: 2, Report: report})
	}
	all, clock := new(eventtest.Log), engine.NewClock()
	e := engine.New(load, engine.Options{Clock: clock, Sampler: native.NewSampler})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- e.Run(ctx, all) }()
	for _, together := range []int{1, 1, 5} {
		var hs []*engine.Handle
		for range together {
			h, err := e.Submit(engine.Request{Text: "Call me Ishmael. Some years ago, never mind how long", MaxTokens: 24, IgnoreEOS: true})
			if err != nil {
				t.Fatal(err)
			}
			hs = append(hs, h)
		}
		for _, h := range hs {
			<-h.Done()
		}
	}
	stop()
	<-ended
	var traced, stamped []event.Event
	for _, e := range all.All() {
		if p, ok := e.Data.(*event.EngineInfo); ok {
			if p.State != event.EngineReady || p.Slots == 0 {
				continue
			}
			info := *p
			info.Remote.Link = event.LinkConnected
			e.Data = &info
			traced = append(traced, e)
			less := info
			less.Caps = event.CapTokens
			e.Data = &less
			stamped = append(stamped, e)
			continue
		}
		traced = append(traced, e)
		if e.Kind == event.KindToken || e.Kind == event.KindRequest && e.State != event.StateDispatched {
			stamped = append(stamped, e)
		}
	}
	look := func(e *event.Event) bool { return e.State.Final() }
	want, got := retell(traced, look), retell(stamped, look)
	if len(want) != 7 || len(got) != 7 {
		t.Fatalf("%d and %d snapshots, want one at the end of each request", len(got), len(want))
	}
	for i, s := range got {
		exact, c := want[i], &s.Counts
		if i >= 3 && !c.AnyQueued && (c.Running < exact.Counts.Running || c.Running+c.Queued != exact.Counts.Running+exact.Counts.Queued) || c.Running > 2 {
			t.Errorf("%d: %d running, %d queued, want %d, %d", i, c.Running, c.Queued, exact.Counts.Running, exact.Counts.Queued)
		}
		if derived, traced := s.Throughput.BusyShare, exact.Throughput.BusyShare; !derived.OK() || derived.V < traced.V { // passes run in requests
			t.Errorf("%d: busy %v, passes %v", i, derived, traced)
		}
	}
	tokens, time := 0., 0.
	for _, r := range got[1].Requests { // one after the other
		tokens, time = tokens+float64(r.Generated-1), time+r.Decode.V
	}
	if decode := got[1].Throughput.Decode; len(got[1].Requests) != 2 || math.Abs(decode.V*time/tokens-1) > 1e-6 {
		t.Errorf("decode %v, want %v", decode, tokens/time)
	}
	last, exact := got[6], want[6]
	if g, w := last.Totals(), exact.Totals(); g.Generated != w.Generated || g.Finished != w.Finished || g.Queued.V != w.Queued.V {
		t.Errorf("totals %+v, want %+v", g, w)
	}
	for i, r := range last.Requests {
		if w := exact.Requests[i]; !r.Cold && r.TTFT != w.TTFT || r.Decode != w.Decode || r.TPOT != w.TPOT || r.Prefill.OK() && r.Prefill.V < w.Prefill.V {
			t.Errorf("request %d: TTFT %v, decode %v, prefill %v, traced %v, %v, %v", r.ID, r.TTFT, r.Decode, r.Prefill, w.TTFT, w.Decode, w.Prefill)
		}
	}
}
