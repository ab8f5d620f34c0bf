package socket

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

// tally counts what a reader receives in a session.
type tally struct {
	came   map[event.Kind]uint64
	lost   event.Drops
	checks int // times that both sides' counts agreed
	states int // states received
	live   map[event.RequestID]bool
	last   event.Event
	total  uint64 // generated tokens, from the outcomes
}

// read follows a connection until the last line.
func (y *tally) read(t testing.TB, conn net.Conn) {
	t.Helper()
	y.came, y.live = map[event.Kind]uint64{}, map[event.RequestID]bool{}
	var d wire.Decoder
	in, syncing := bufio.NewScanner(conn), false
	in.Buffer(nil, wire.MaxLine)
	for in.Scan() {
		var events []event.Event
		s, err := d.Decode(in.Bytes(), func(e event.Event) { events = append(events, e) })
		if err != nil {
			t.Fatalf("%v: %s", err, in.Bytes())
		}
		switch s.Type {
		case wire.Sync:
			syncing = true
			y.live = map[event.RequestID]bool{}
		case wire.Synced:
			syncing = false
			y.states++
		case wire.Dropped:
			y.lost = *events[0].Data.(*event.Drops)
		}
		if s.HasEvents {
			y.agree(t, s.Events)
		}
		if s.Type != wire.None {
			continue
		}
		for _, e := range events {
			y.take(e, syncing)
		}
	}
}

// agree compares received and dropped events with the server's counts.
func (y *tally) agree(t testing.TB, sent uint64) {
	t.Helper()
	came := uint64(0)
	for _, n := range y.came {
		came += n
	}
	if came+y.lost.Total() != sent {
		t.Errorf("%d arrived and %d were dropped, the server counts %d", came, y.lost.Total(), sent)
	}
	y.checks++
}

func (y *tally) take(e event.Event, syncing bool) {
	if !syncing {
		y.came[e.Kind]++
		y.last = e
	}
	if e.Kind == event.KindRequest {
		y.live[e.Req] = !e.State.Final()
		if o, ok := e.Data.(*event.Outcome); ok {
			y.total += uint64(o.Generated)
		}
	}
}

// TestReaderThatStopsReading: a blocked reader does not affect the engine. When it reads again it gets the exact
// numbers of dropped events, the live requests, and the totals.
func TestReaderThatStopsReading(t *testing.T) {
	s := server(t, path(t), Options{Buffer: 1000})
	conn := connection(t, s)
	eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
	emitted := map[event.Kind]uint64{}
	emit := func(e event.Event) {
		s.Emit(e)
		emitted[e.Kind]++
	}
	for id := range event.RequestID(100) { // about 15 MB, more than both sides buffer
		emit(queued(id+1, event.Time(id)))
		for i := range 1000 {
			e := token(id+1, event.Time(id)*1000+event.Time(i), i)
			e.Text = strings.Repeat("text ", 30)
			emit(e)
			if i%10 == 0 {
				emit(event.Event{Kind: event.KindKV, At: e.At, Layer: -1, Data: &event.KV{Used: int64(i), Total: 1000}})
			}
		}
		if id != 99 {
			emit(finished(id+1, event.Time(id)*1000+1001, 1000))
		}
	}
	emit(event.Event{Kind: event.KindLog, At: 1, Layer: -1, Text: "last"})
	var y tally
	closed := make(chan error)
	go func() { // once the reader has caught up
		for {
			s.mu.Lock()
			behind := uint64(1)
			for r := range s.readers {
				behind = s.ring.head - r.cursor.next
			}
			s.mu.Unlock()
			if behind == 0 {
				closed <- s.Close()
				return
			}
		}
	}()
	y.read(t, conn)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for k := range event.NumKinds {
		if y.came[k]+y.lost[k] != emitted[k] {
			t.Errorf("%v: %d arrived and %d were dropped of %d", k, y.came[k], y.lost[k], emitted[k])
		}
	}
	if y.lost[event.KindToken] == 0 {
		t.Error("nothing was dropped: the test tests nothing")
	}
	if y.checks == 0 {
		t.Error("the server did not report how much it sent")
	}
	if y.last.Text != "last" {
		t.Errorf("the newest event was dropped: the last one is %+v", y.last)
	}
	if y.states < 2 {
		t.Errorf("the state was sent %d times, want again after the drops", y.states)
	}
	for id, live := range y.live {
		if live != (id == 100) {
			t.Errorf("request %d: live %v", id, live)
		}
	}
}

// TestRing: for any order of pushes and reads, the events a reader takes plus its drops equal the events pushed, by
// kind.
func TestRing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q := ring{events: make([]event.Event, rapid.IntRange(1, 20).Draw(r, "size"))}
		type follower struct {
			cursor cursor
			lost   event.Drops
			took   event.Drops
			from   event.Drops
			next   event.Time
		}
		readers := []*follower{{}}
		n := event.Time(0)
		for range rapid.IntRange(0, 60).Draw(r, "operations") {
			switch who := rapid.IntRange(0, 3).Draw(r, "who"); {
			case who == 0 && len(readers) < 4:
				readers = append(readers, &follower{cursor: q.begin(), from: q.pushed, next: n})
			case who == 1:
				f := readers[rapid.IntRange(0, len(readers)-1).Draw(r, "reader")]
				for _, e := range q.take(&f.cursor, make([]event.Event, 0, rapid.IntRange(1, 9).Draw(r, "n")), &f.lost) {
					if e.At < f.next {
						r.Fatalf("event %v comes after %v", e.At, f.next-1)
					}
					f.next = e.At + 1
					f.took[e.Kind]++
				}
			default:
				for range rapid.IntRange(1, 12).Draw(r, "pushes") {
					q.push(&event.Event{Kind: event.Kind(rapid.IntRange(0, 3).Draw(r, "kind")), At: n})
					n++
				}
			}
		}
		for i, f := range readers {
			for left := true; left; {
				events := q.take(&f.cursor, make([]event.Event, 0, 5), &f.lost)
				for _, e := range events {
					f.took[e.Kind]++
				}
				left = len(events) > 0
			}
			for k := range f.took {
				if f.from[k]+f.took[k]+f.lost[k] != q.pushed[k] {
					r.Fatalf("reader %d, kind %d: %d before it, %d taken, %d lost of %d", i, k, f.from[k], f.took[k], f.lost[k], q.pushed[k])
				}
			}
		}
	})
}

// TestLossOfTheSourceIsPassedOn: drops of the sources are added to those of the reader.
func TestLossOfTheSourceIsPassedOn(t *testing.T) {
	s := server(t, path(t), Options{})
	var got log
	attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
	s.Emit(event.Event{Kind: event.KindDrops, Layer: -1, Data: &event.Drops{event.KindToken: 5}})
	s.Emit(event.Event{Kind: event.KindDrops, Layer: -1, Data: &event.Drops{event.KindToken: 7, event.KindLog: 1}})
	eventtest.Wait(t, "the loss", func() bool {
		all := got.OfKind(event.KindDrops)
		return len(all) > 0 && *all[len(all)-1].Data.(*event.Drops) == event.Drops{event.KindToken: 7, event.KindLog: 1}
	})
	if r := got.remote(); r.Missed != 0 {
		t.Errorf("%d events are missing besides", r.Missed)
	}
}

// TestRouterCountsAreReplaced: of router counts and operation times only the newest are kept, however large they are
// and however far a reader is behind.
func TestRouterCountsAreReplaced(t *testing.T) {
	s := server(t, path(t), Options{})
	connection(t, s)
	eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
	for i := range 2000 {
		s.Emit(event.Event{Kind: event.KindExperts, Layer: -1, Data: &event.Experts{Layers: 1, Experts: 1, Decode: []uint64{uint64(i)}}})
		s.Emit(event.Event{Kind: event.KindOps, Layer: -1, Data: &event.Ops{Passes: int64(i + 1)}})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := 0
	for n := s.ring.tail; n < s.ring.head; n++ {
		if s.ring.events[n%uint64(len(s.ring.events))].Data != nil {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d router counts and times of operations are kept, want one each", kept)
	}
}

// TestMillionRequestsThatNeverEnd: the first are kept and the others counted, and a late joiner gets that count.
func TestMillionRequestsThatNeverEnd(t *testing.T) {
	s := server(t, path(t), Options{})
	const many, most = 1_000_000, 16 << 20
	before := heap()
	for id := range event.RequestID(many) {
		s.Emit(queued(id+1, 1))
		s.Emit(token(id+1, 1, 0))
	}
	if grown := heap() - before; grown > most {
		t.Errorf("%d MB are kept", grown>>20)
	}
	kept := map[event.RequestID]bool{}
	for _, e := range s.state.events() {
		kept[e.Req] = true
	}
	if len(kept) != catchup.MaxLive || !kept[1] || kept[many] {
		t.Errorf("%d live requests are remembered, or one was replaced by another", len(kept))
	}
	if n := s.state.Untracked(); n != many-catchup.MaxLive {
		t.Errorf("%d are counted, want %d", n, many-catchup.MaxLive)
	}
	l := new(log)
	attach(t, s.Address(), "", l)
	eventtest.Wait(t, "what is missing", func() bool {
		for _, e := range l.All() {
			if lost, ok := e.Data.(*event.Drops); ok {
				return lost[event.KindRequest] == many-catchup.MaxLive
			}
		}
		return false
	})
}

// TestEmitAllocatesNothing: Emit allocates nothing while a reader keeps up.
func TestEmitAllocatesNothing(t *testing.T) {
	s := server(t, path(t), Options{})
	connection(t, s)
	eventtest.Wait(t, "the reader", func() bool { return s.Readers() == 1 })
	s.Emit(queued(1, 1))
	i := 0
	if n := testing.AllocsPerRun(20_000, func() {
		s.Emit(token(1, event.Time(i), i))
		i++
	}); n >= 1 {
		t.Errorf("%v allocations an event", n)
	}
}

// TestMissingTokens: positions show tokens that a reader never got, after which no gap is known. Those of the start of a
// request are missing only if tokens are.
func TestMissingTokens(t *testing.T) {
	f := newFake(t)
	var got log
	client, err := Dial(f.address(), "", engine.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	watch(t, client, &got)
	f.greet("one")
	f.logged(&got, "tied")
	for _, line := range []string{
		`{"t":"tok","a":1000,"r":1,"i":1}`, // it counts from 1
		`{"t":"tok","a":1001,"r":1,"i":2,"n":3}`,
		`{"t":"tok","a":1002,"r":1,"i":5}`,
		`{"t":"tok","a":1003,"r":1,"i":7}`, // one is missing
		`{"t":"tok","a":1004,"r":1}`,
		`{"t":"tok","a":1005,"r":2,"i":0,"c":1}`,
		`{"t":"tok","a":1006,"r":2,"i":9}`, // the position of another choice
		`{"t":"lost","a":1007,"by":{"token":3}}`,
		`{"t":"tok","a":1008,"r":3,"i":2}`, // the first one is missing
	} {
		f.send("%s", line)
	}
	eventtest.Wait(t, "tokens", func() bool { return len(got.OfKind(event.KindToken)) == 8 })
	for i, want := range []bool{false, false, false, true, false, false, false, true} {
		if e := got.OfKind(event.KindToken)[i]; e.Lost != want {
			t.Errorf("token %d: lost %v, want %v", i+1, e.Lost, want)
		}
	}
}
