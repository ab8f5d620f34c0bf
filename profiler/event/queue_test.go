package event

import (
	"sync"
	"testing"
)

func TestQueueKeepsOrder(t *testing.T) {
	q := NewQueue(8)
	var batch []Event
	next := Time(0)
	for round := range 5 {
		for range round {
			q.Emit(Event{At: next})
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

func TestFullQueueDropsTheNewestAndCountsThem(t *testing.T) {
	q := NewQueue(4)
	emit := func(kinds ...Kind) {
		for i, k := range kinds {
			q.Emit(Event{Kind: k, At: Time(i)})
		}
	}
	emit(KindToken, KindToken, KindStage, KindToken, KindToken, KindLog, KindToken, NumKinds)
	batch, lost := q.Swap(nil)
	if len(batch) != 4 || batch[3].At != 3 {
		t.Errorf("%d events up to %d, want the first four", len(batch), batch[len(batch)-1].At)
	}
	if want := (Lost{KindToken: 2, KindLog: 1}); lost != want || lost.Total() != 3 {
		t.Errorf("lost %v, want %v", lost, want)
	}
	emit(KindHost, KindHost, KindHost, KindHost, KindHost)
	if _, lost = q.Swap(batch); lost != (Lost{KindToken: 2, KindLog: 1, KindHost: 1}) {
		t.Errorf("lost %v in all, want the sums since the beginning", lost)
	}
}

func TestQueueWakesWhenHalfFull(t *testing.T) {
	q := NewQueue(4)
	woken := func() bool {
		select {
		case <-q.Half():
			return true
		default:
			return false
		}
	}
	q.Emit(Event{})
	q.Emit(Event{})
	if woken() {
		t.Error("woken before the queue was half full")
	}
	q.Emit(Event{})
	if !woken() {
		t.Error("not woken by the event after the first half")
	}
	if q.Emit(Event{}); woken() {
		t.Error("woken twice for one batch")
	}
}

func TestSwapLetsGoOfPayloads(t *testing.T) {
	q := NewQueue(2)
	q.Emit(Event{Text: "kept", Data: new(Engine)})
	batch, _ := q.Swap(nil)
	q.Swap(batch)
	if batch[0].Data != nil || batch[0].Text != "" {
		t.Errorf("a buffer given back still refers to %v and %q", batch[0].Data, batch[0].Text)
	}
}

// TestEveryEventIsDeliveredOrCounted: producers number their events; the numbers that arrive ascend, and what is missing was counted.
func TestEveryEventIsDeliveredOrCounted(t *testing.T) {
	const producers, each = 4, 5000
	q := NewQueue(64)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range each {
				q.Emit(Event{Kind: Kind(p), Req: RequestID(p), At: Time(i)})
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var arrived [producers]uint64
	next := [producers]Time{}
	var batch []Event
	var lost Lost
	for running := true; running; {
		select {
		case <-done:
			running = false // and swap once more
		case <-q.Half():
		}
		batch, lost = q.Swap(batch)
		for _, e := range batch {
			if e.At < next[e.Req] {
				t.Fatalf("producer %d: number %d came after number %d", e.Req, e.At, next[e.Req]-1)
			}
			next[e.Req] = e.At + 1
			arrived[e.Req]++
		}
	}
	for p := range producers {
		if arrived[p]+lost[p] != each {
			t.Errorf("producer %d: %d arrived and %d were lost, together not %d", p, arrived[p], lost[p], each)
		}
	}
}

func TestEmitAllocatesNothing(t *testing.T) {
	q := NewQueue(256)
	var batch []Event
	data := new(KV)
	sink := Tee{q, Discard{}}
	batch, _ = q.Swap(batch)
	if n := testing.AllocsPerRun(1000, func() {
		sink.Emit(Event{Kind: KindToken, Req: 1, Text: "word"})
		sink.Emit(Event{Kind: KindKV, Data: data})
		if len(q.front) > 200 {
			batch, _ = q.Swap(batch)
		}
	}); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

// seen is a Sink that remembers.
type seen []Event

func (s *seen) Emit(e Event) { *s = append(*s, e) }

func TestTeeHandsEveryEventToAll(t *testing.T) {
	var one, two seen
	tee := Tee{&one, &two}
	tee.Emit(Event{Kind: KindLog, Text: "a"})
	tee.Emit(Event{Kind: KindLog, Text: "b"})
	for _, s := range []seen{one, two} {
		if len(s) != 2 || s[0].Text != "a" || s[1].Text != "b" {
			t.Errorf("got %v, want both events in order", s)
		}
	}
}

// BenchmarkEmit is what an event costs its producer, with the swaps of a consumer that keeps up.
func BenchmarkEmit(b *testing.B) {
	q := NewQueue(DefaultQueue)
	var batch []Event
	e := Event{Kind: KindToken, Req: 1, ID: 7, N: 1, Text: " word"}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		q.Emit(e)
		if n++; n == DefaultQueue/2 {
			batch, _ = q.Swap(batch)
			n = 0
		}
	}
	if _, lost := q.Swap(batch); lost.Total() > 0 {
		b.Fatalf("%d events were lost", lost.Total())
	}
}

// BenchmarkEmitFull is what an event costs that finds no room.
func BenchmarkEmitFull(b *testing.B) {
	q := NewQueue(1)
	b.ReportAllocs()
	for b.Loop() {
		q.Emit(Event{Kind: KindToken})
	}
}

// BenchmarkEmitFromMany is the same with a producer on every core and a consumer.
func BenchmarkEmitFromMany(b *testing.B) {
	q := NewQueue(DefaultQueue)
	stop := make(chan struct{})
	var consumer sync.WaitGroup
	consumer.Go(func() {
		var batch []Event
		for {
			select {
			case <-stop:
				return
			case <-q.Half():
				batch, _ = q.Swap(batch)
			}
		}
	})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			q.Emit(Event{Kind: KindToken, Req: 1, Text: " word"})
		}
	})
	close(stop)
	consumer.Wait()
}
