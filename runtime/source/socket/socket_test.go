package socket

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// TestEventsArrive: events arrive in order, with their times moved to the client's clock.
func TestEventsArrive(t *testing.T) {
	clock := engine.NewClock()
	s := server(t, path(t), Options{Clock: clock})
	var got log
	attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "a reader", func() bool { return s.Readers() == 1 && got.remote().Link == event.LinkConnected })
	from := clock.Now()
	want := []event.Event{queued(7, from)}
	for i := range 1000 {
		at := from + event.Time(i+1)*1000
		split := event.Split{Attention: uint32(i + 1), Head: 5, Sample: 9}
		want = append(want, event.Event{Kind: event.KindStep, At: at, Dur: 900, Step: uint64(i + 1), N: 1, Layer: -1, Split: split})
		e := token(7, at, i)
		split.Sample = 3
		e.Split, e.LogP, e.HasLogP = split, -0.25, true
		want = append(want, e)
		if i%100 == 0 {
			want = append(want, event.Event{Kind: event.KindKV, At: at, Layer: -1, Data: &event.KV{Used: int64(i), Total: 4096}})
		}
	}
	want = append(want, finished(7, from+2000_000, 1000), event.Event{Kind: event.KindLog, At: from, Layer: -1, Text: "done"})
	for _, e := range want {
		s.Emit(e)
	}
	eventtest.Wait(t, "the last event", func() bool { return len(got.OfKind(event.KindLog)) == 1 })
	var came []event.Event
	for _, e := range got.All() {
		if e.Kind != event.KindEngine {
			came = append(came, e)
		}
	}
	if len(came) != len(want) {
		t.Fatalf("%d events came of %d", len(came), len(want))
	}
	moved := came[0].At - want[0].At
	for i := range came {
		came[i].At -= moved
		if diff := cmp.Diff(want[i], came[i]); diff != "" {
			t.Fatalf("event %d: %s", i, diff)
		}
	}
}

// TestClocksAreTied: a moment is the same on both sides, within the time the introduction takes.
func TestClocksAreTied(t *testing.T) {
	clock := engine.NewClock()
	s := server(t, path(t), Options{Clock: clock})
	var got log
	c := attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "a connection", func() bool { return got.remote().Link == event.LinkConnected })
	before := c.follow.clock.Now()
	s.Emit(event.Event{Kind: event.KindLog, At: clock.Now(), Text: "now"})
	eventtest.Wait(t, "the event", func() bool { return len(got.OfKind(event.KindLog)) == 1 })
	after := c.follow.clock.Now()
	// A slow introduction makes later events seem late, never early.
	if at := got.OfKind(event.KindLog)[0].At; at < before {
		t.Errorf("emitted between %v and %v, stamped %v", before, after, at)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventtest.Wait(t, "the end", func() bool { return got.remote().Link == event.LinkDisconnected })
	if why := got.remote().Reason; why == "" {
		t.Error("no reason for the end")
	}
}

// TestLateReaderGetsTheState: a late joiner gets the engine, the model, and the live requests with their progress.
func TestLateReaderGetsTheState(t *testing.T) {
	s := server(t, path(t), Options{})
	model := &event.Model{Name: "m", Layers: 2}
	s.Emit(event.Event{Kind: event.KindStage, Stage: event.StageLoadOpen, At: 1, Dur: 1, Layer: -1})
	s.Emit(event.Event{Kind: event.KindModel, At: 2, Dur: 7, Layer: -1, Data: model})
	s.Emit(event.Event{Kind: event.KindExperts, At: 2, Layer: -1, Data: &event.Experts{Layers: 1, Experts: 2, Decode: []uint64{1, 2}}})
	s.Emit(event.Event{Kind: event.KindExperts, At: 3, Layer: -1, Data: &event.Experts{Layers: 1, Experts: 2, Decode: []uint64{5, 6}}})
	s.Emit(queued(1, 3))
	s.Emit(queued(2, 4))
	s.Emit(event.Event{Kind: event.KindRequest, Req: 2, State: event.StateDispatched, At: 5, Layer: -1})
	for i := range 300 {
		s.Emit(token(2, event.Time(10+10*i), i))
	}
	s.Emit(finished(1, 3300, 0))
	var got log
	attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "tokens of the state", func() bool { return sum(got.OfKind(event.KindToken)) == 300 })
	s.Emit(token(2, 3400, 300))
	eventtest.Wait(t, "a token after the state", func() bool { return sum(got.OfKind(event.KindToken)) == 301 })
	tokens := got.OfKind(event.KindToken)
	if first, last := tokens[0], tokens[len(tokens)-2]; last.At-first.At != 2990 || first.ID != 100 || len(tokens) > maxParts+2 {
		t.Errorf("%d token events from %v to %v", len(tokens), first, last)
	}
	index := int32(0)
	for _, e := range tokens {
		if e.Index != index {
			t.Errorf("token %d comes after token %d", e.Index, index-1)
		}
		index += e.N
	}
	requests := got.OfKind(event.KindRequest)
	if len(requests) != 2 || requests[0].Req != 2 || requests[1].State != event.StateDispatched {
		t.Errorf("requests %v, want the one that runs", requests)
	}
	if x := got.OfKind(event.KindExperts); len(x) != 1 || x[0].Data.(*event.Experts).Decode[1] != 6 {
		t.Errorf("router counts %v, want the newest", x)
	}
	if m := got.OfKind(event.KindModel); len(m) != 1 || m[0].Dur != 7 || *m[0].Data.(*event.Model) != *model {
		t.Errorf("models %v", m)
	}
	if load := got.OfKind(event.KindStage); len(load) != 1 {
		t.Errorf("stages of the load %v", load)
	}
}

func sum(tokens []event.Event) (n int) {
	for _, e := range tokens {
		n += int(e.N)
	}
	return n
}

// TestManyReaders: each reader gets everything.
func TestManyReaders(t *testing.T) {
	s := server(t, path(t), Options{})
	logs := make([]log, 5)
	for i := range logs {
		attach(t, s.Address(), "", &logs[i])
	}
	eventtest.Wait(t, "readers", func() bool { return s.Readers() == len(logs) })
	for i := range 2000 {
		s.Emit(token(1, event.Time(i), i))
	}
	for i := range logs {
		eventtest.Wait(t, "tokens", func() bool { return len(logs[i].OfKind(event.KindToken)) == 2000 })
	}
}

// TestTooManyReaders: a reader over the limit gets the reason.
func TestTooManyReaders(t *testing.T) {
	s := server(t, path(t), Options{})
	for range maxReaders {
		connection(t, s)
	}
	eventtest.Wait(t, "readers", func() bool { return s.Readers() == maxReaders })
	var got log
	attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "a refusal", func() bool { return got.remote().Link == event.LinkDisconnected })
	if why := got.remote().Reason; why != "too many readers: limit 32" {
		t.Errorf("refused because %q", why)
	}
}

// TestLateReaderOfACrowd: a late joiner gets each of thousands of live requests, with all their tokens.
func TestLateReaderOfACrowd(t *testing.T) {
	const streams, tokens = 5000, 20
	s := server(t, path(t), Options{})
	for i := range tokens {
		for id := range event.RequestID(streams) {
			if i == 0 {
				s.Emit(queued(id+1, 1))
				s.Emit(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateDispatched, At: 2, Layer: -1})
			}
			s.Emit(token(id+1, event.Time(i+3), i))
		}
	}
	l := new(log)
	attach(t, s.Address(), "", l)
	sums := func() map[event.RequestID]int {
		out := map[event.RequestID]int{}
		for _, e := range l.All() {
			if e.Kind == event.KindToken {
				out[e.Req] += int(e.N)
			}
		}
		return out
	}
	eventtest.Wait(t, "all requests", func() bool { return len(sums()) == streams })
	eventtest.Wait(t, "the tokens of the last one", func() bool { return sums()[streams] == tokens })
	for id, n := range sums() {
		if n != tokens {
			t.Fatalf("request %d has %d tokens, want %d", id, n, tokens)
		}
	}
}
