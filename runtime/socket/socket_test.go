package socket

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// TestEventsArrive: what is emitted on one side is emitted on the other, in order, with the times moved to the other clock.
func TestEventsArrive(t *testing.T) {
	clock := runtime.NewClock()
	s := server(t, path(t), Options{Clock: clock})
	var got log
	attach(t, s.Address(), "", &got)
	await(t, "a reader", func() bool { return s.Readers() == 1 && got.remote().Link == event.LinkConnected })
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
	await(t, "the last event", func() bool { return len(got.Of(event.KindLog)) == 1 })
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

// TestClocksAreTied: a moment is the same on both sides, but for the time that the introduction takes.
func TestClocksAreTied(t *testing.T) {
	clock := runtime.NewClock()
	s := server(t, path(t), Options{Clock: clock})
	var got log
	c := attach(t, s.Address(), "", &got)
	await(t, "a connection", func() bool { return got.remote().Link == event.LinkConnected })
	before := c.clock.Now()
	s.Emit(event.Event{Kind: event.KindLog, At: clock.Now(), Text: "now"})
	await(t, "the event", func() bool { return len(got.Of(event.KindLog)) == 1 })
	after := c.clock.Now()
	// An introduction that takes long makes what follows seem late, never early.
	if at := got.Of(event.KindLog)[0].At; at < before {
		t.Errorf("emitted after %v and before %v, it says %v", before, after, at)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the end", func() bool { return got.remote().Link == event.LinkDisconnected })
	if why := got.remote().Why; why == "" {
		t.Error("no reason for the end")
	}
}

// TestLateReaderGetsTheState: whoever comes late knows the engine, the model, what runs and how far it is.
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
	await(t, "tokens of the state", func() bool { return sum(got.Of(event.KindToken)) == 300 })
	s.Emit(token(2, 3400, 300))
	await(t, "a token after the state", func() bool { return sum(got.Of(event.KindToken)) == 301 })
	tokens := got.Of(event.KindToken)
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
	requests := got.Of(event.KindRequest)
	if len(requests) != 2 || requests[0].Req != 2 || requests[1].State != event.StateDispatched {
		t.Errorf("requests %v, want the one that runs", requests)
	}
	if x := got.Of(event.KindExperts); len(x) != 1 || x[0].Data.(*event.Experts).Decode[1] != 6 {
		t.Errorf("router counts %v, want the newest", x)
	}
	if m := got.Of(event.KindModel); len(m) != 1 || m[0].Dur != 7 || *m[0].Data.(*event.Model) != *model {
		t.Errorf("models %v", m)
	}
	if load := got.Of(event.KindStage); len(load) != 1 {
		t.Errorf("stages of the load %v", load)
	}
}

func sum(tokens []event.Event) (n int) {
	for _, e := range tokens {
		n += int(e.N)
	}
	return n
}

// TestManyReaders all get everything.
func TestManyReaders(t *testing.T) {
	s := server(t, path(t), Options{})
	logs := make([]log, 5)
	for i := range logs {
		attach(t, s.Address(), "", &logs[i])
	}
	await(t, "readers", func() bool { return s.Readers() == len(logs) })
	for i := range 2000 {
		s.Emit(token(1, event.Time(i), i))
	}
	for i := range logs {
		await(t, "tokens", func() bool { return len(logs[i].Of(event.KindToken)) == 2000 })
	}
}

// TestTooManyReaders are told so.
func TestTooManyReaders(t *testing.T) {
	s := server(t, path(t), Options{})
	for range maxReaders {
		connection(t, s)
	}
	await(t, "readers", func() bool { return s.Readers() == maxReaders })
	var got log
	attach(t, s.Address(), "", &got)
	await(t, "a refusal", func() bool { return got.remote().Link == event.LinkDisconnected })
	if why := got.remote().Why; why != "there are 32 readers already" {
		t.Errorf("refused because %q", why)
	}
}
