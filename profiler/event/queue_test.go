package event

import (
	"sync"
	"testing"
)

func put(q *Queue[Event], e Event) { q.Put(e, e.Kind) }

func TestQueueKeepsOrder(t *testing.T) {
	q := NewQueue[Event](8)
	var batch []Event
	next := Time(0)
	for round := range 5 {
		for range round {
			put(q, Event{At: next})
			next++
		}
		batch, _ = q.Swap(batch)
		if len(batch) != round {
			t.Fatalf("round %d: %d events, want %d", round, len(batch), round)
		}
		for i, e := range batch {
			if want := next - Time(round) + Time(i); e.At != want {
				t.Fatalf("round %d: event %d is number %d, want %d", round, i, e.At, want)
			}
		}
	}
}

func TestFullQueueDropsNewest(t *testing.T) {
	q := NewQueue[Event](4)
	emit := func(kinds ...Kind) {
		for i, k := range kinds {
			put(q, Event{Kind: k, At: Time(i)})
		}
	}
	emit(KindToken, KindToken, KindStage, KindToken, KindToken, KindLog, KindToken, NumKinds)
	batch, drops := q.Swap(nil)
	if len(batch) != 4 || batch[3].At != 3 {
		t.Errorf("%d events up to %d, want the first four", len(batch), batch[len(batch)-1].At)
	}
	if want := (Drops{KindToken: 2, KindLog: 1}); drops != want || drops.Total() != 3 {
		t.Errorf("drops %v, want %v", drops, want)
	}
	emit(KindHost, KindHost, KindHost, KindHost, KindHost)
	if _, drops = q.Swap(batch); drops != (Drops{KindToken: 2, KindLog: 1, KindHost: 1}) {
		t.Errorf("drops %v, want totals since the queue was created", drops)
	}
}

// TestTokensLeaveRoomForRequests checks that request events fit when tokens have filled the queue, and that drops are
// counted.
func TestTokensLeaveRoomForRequests(t *testing.T) {
	const size, streams = 1 << 10, 100
	q := NewQueue[Event](size)
	for range 2 * size {
		put(q, Event{Kind: KindToken})
	}
	for id := range RequestID(streams) {
		put(q, Event{Kind: KindRequest, Req: id, State: StateFinished})
	}
	batch, drops := q.Swap(nil)
	ends := 0
	for _, e := range batch {
		if e.Kind == KindRequest {
			ends++
		}
	}
	if ends != streams || drops[KindToken] != 2*size-size*7/8 || drops.Total() != drops[KindToken] {
		t.Errorf("%d ends, drops %v", ends, drops)
	}
	for range size + 1 {
		put(q, Event{Kind: KindRequest})
	}
	if _, drops = q.Swap(batch); drops[KindRequest] != 1 {
		t.Errorf("drops %v, want one request event", drops)
	}
}

func TestQueueWakesWhenHalfFull(t *testing.T) {
	q := NewQueue[Event](4)
	signalled := func() bool {
		select {
		case <-q.HalfFull():
			return true
		default:
			return false
		}
	}
	put(q, Event{})
	put(q, Event{})
	if signalled() {
		t.Error("signal before the queue was half full")
	}
	put(q, Event{})
	if !signalled() {
		t.Error("no signal after the queue was half full")
	}
	if put(q, Event{}); signalled() {
		t.Error("two signals for one batch")
	}
}

func TestSwapReleasesPayloads(t *testing.T) {
	q := NewQueue[Event](2)
	put(q, Event{Text: "kept", Data: new(EngineInfo)})
	batch, _ := q.Swap(nil)
	q.Swap(batch)
	if batch[0].Data != nil || batch[0].Text != "" {
		t.Errorf("a returned buffer still refers to %v and %q", batch[0].Data, batch[0].Text)
	}
}

// TestClosedQueueDropsAll checks that what comes after the end, and what its consumer could not use, is counted.
func TestClosedQueueDropsAll(t *testing.T) {
	q := NewQueue[Event](10)
	for i := range 25 {
		put(q, Event{Kind: KindToken + Kind(i%2)})
	}
	q.Close()
	put(q, Event{Kind: KindHost})
	q.Drop(&Drops{KindLog: 2})
	batch, drops := q.Swap(nil)
	if want := (Drops{KindToken: 8, KindExperts: 7, KindHost: 1, KindLog: 2}); len(batch) != 10 || drops != want || q.Drops() != want {
		t.Errorf("kept %d, dropped %v", len(batch), drops)
	}
}

// TestEveryEventIsDeliveredOrCounted checks that events of concurrent producers arrive in order or are counted as
// dropped.
func TestEveryEventIsDeliveredOrCounted(t *testing.T) {
	const producers, each = 4, 5000
	q := NewQueue[Event](64)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range each {
				put(q, Event{Kind: Kind(p), Req: RequestID(p), At: Time(i)})
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var arrived [producers]uint64
	next := [producers]Time{}
	var batch []Event
	var drops Drops
	for running := true; running; {
		select {
		case <-done:
			running = false // after one more swap
		case <-q.HalfFull():
		}
		batch, drops = q.Swap(batch)
		for _, e := range batch {
			if e.At < next[e.Req] {
				t.Fatalf("producer %d: event %d arrived after event %d", e.Req, e.At, next[e.Req]-1)
			}
			next[e.Req] = e.At + 1
			arrived[e.Req]++
		}
	}
	for p := range producers {
		if arrived[p]+drops[p] != each {
			t.Errorf("producer %d: %d arrived and %d were dropped, want %d in total", p, arrived[p], drops[p], each)
		}
	}
}

func TestEmitAllocatesNothing(t *testing.T) {
	q := NewQueue[Event](256)
	var batch []Event
	data := new(KV)
	sink := Tee{SinkFunc(func(e Event) { put(q, e) }), Tee{}}
	batch, _ = q.Swap(batch)
	if n := testing.AllocsPerRun(1000, func() {
		sink.Emit(Event{Kind: KindToken, Req: 1, Text: "word"})
		sink.Emit(Event{Kind: KindKV, Data: data})
		if len(q.front) > 200 {
			batch, _ = q.Swap(batch)
		}
	}); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

// recorder is a Sink that records events.
type recorder []Event

func (s *recorder) Emit(e Event) { *s = append(*s, e) }

func TestTee(t *testing.T) {
	var one, two recorder
	tee := Tee{&one, &two}
	tee.Emit(Event{Kind: KindLog, Text: "a"})
	tee.Emit(Event{Kind: KindLog, Text: "b"})
	for _, s := range []recorder{one, two} {
		if len(s) != 2 || s[0].Text != "a" || s[1].Text != "b" {
			t.Errorf("got %v, want both events in order", s)
		}
	}
}

// BenchmarkEmit measures the cost of an event for its producer, with a consumer that keeps up.
func BenchmarkEmit(b *testing.B) {
	q := NewQueue[Event](DefaultQueue)
	var batch []Event
	e := Event{Kind: KindToken, Req: 1, ID: 7, N: 1, Text: " word"}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		put(q, e)
		if n++; n == DefaultQueue/2 {
			batch, _ = q.Swap(batch)
			n = 0
		}
	}
	if _, drops := q.Swap(batch); drops.Total() > 0 {
		b.Fatalf("%d events were dropped", drops.Total())
	}
}

// BenchmarkEmitFull measures the cost of a dropped event.
func BenchmarkEmitFull(b *testing.B) {
	q := NewQueue[Event](1)
	b.ReportAllocs()
	for b.Loop() {
		put(q, Event{Kind: KindToken})
	}
}

// BenchmarkEmitFromMany does the same as BenchmarkEmit with a producer per core.
func BenchmarkEmitFromMany(b *testing.B) {
	q := NewQueue[Event](DefaultQueue)
	stop := make(chan struct{})
	var consumer sync.WaitGroup
	consumer.Go(func() {
		var batch []Event
		for {
			select {
			case <-stop:
				return
			case <-q.HalfFull():
				batch, _ = q.Swap(batch)
			}
		}
	})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			put(q, Event{Kind: KindToken, Req: 1, Text: " word"})
		}
	})
	close(stop)
	consumer.Wait()
}
