package recording

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/store"
)

// eventList is a sink that keeps all events.
type eventList []event.Event

func (p *eventList) Emit(e event.Event) { *p = append(*p, e) }

// sample returns at least n events of an engine with a few busy slots: half are tokens with text, a quarter each are
// steps and router counts.
func sample(n int) []event.Event {
	var p eventList
	b := &busySession{now: ms, rand: rand.New(rand.NewPCG(1, 2)), sink: &p}
	b.begin()
	for len(p) < n {
		b.step(func() {})
	}
	return p
}

// BenchmarkEmit measures the cost of an event for the engine's goroutine while the queue has room.
func BenchmarkEmit(b *testing.B) {
	begin := time.Now()
	r := &Recorder{queue: event.NewQueue[catchup.Entry](queueSize), now: func() event.Time { return event.Time(time.Since(begin)) }}
	events := sample(queueSize)[:queueSize]
	var done []catchup.Entry
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r.Emit(events[n%queueSize])
		if n%queueSize == queueSize-1 {
			b.StopTimer()
			done, _ = r.queue.Swap(done)
			b.StartTimer()
		}
	}
	if drops := r.queue.Drops(); drops.Total() > 0 {
		b.Fatalf("dropped %v", drops)
	}
}

// BenchmarkRecord measures the cost of an event for the recorder's goroutine, and its size on disk.
func BenchmarkRecord(b *testing.B) {
	events := sample(100_000)
	r, err := newRecorder(b.TempDir()+"/r", RecordOptions{Now: func() event.Time { return 1 }, SegmentBytes: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	defer r.out.close()
	b.ReportAllocs()
	lines := 0
	for n := 0; b.Loop(); n++ {
		e := &events[n%len(events)]
		r.add(&catchup.Entry{Event: *e, Arrived: event.Time(n) * ms})
		if len(r.block.lines) >= blockSize {
			lines += len(r.block.lines)
			if err := r.write(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(r.out.total)/float64(max(r.status.Events, 1)), "B/event")
	b.ReportMetric(float64(lines)/float64(max(r.status.Events, 1)), "lineB/event")
}

// BenchmarkReplay replays 100,000 events as fast as possible: into a sink that discards them, and into a store as a
// seek does.
func BenchmarkReplay(b *testing.B) {
	const n = 100_000
	file := taped(b, sample(n), event.Time(time.Second))
	for _, into := range []string{"discard", "store"} {
		b.Run(into, func(b *testing.B) {
			var entries uint64
			for b.Loop() {
				rec, err := recordingOf(bytes.NewReader(file), int64(len(file)))
				if err != nil {
					b.Fatal(err)
				}
				opt := PlayOptions{Speed: Unpaced, StopAtEnd: true}
				var s *store.Store
				var sink event.Sink = event.Tee{}
				if into == "store" {
					opt.Drain = func() { s.Snapshot() }
				}
				p, err := NewPlayer(rec, opt)
				if err != nil {
					b.Fatal(err)
				}
				if into == "store" {
					s = store.New(store.Options{Now: p.Now, Wall: p.Wall})
					sink = s
				}
				if err := p.Run(context.Background(), sink); err != nil {
					b.Fatal(err)
				}
				if s != nil && s.Snapshot().Drops != (event.Drops{}) {
					b.Fatal("the replay outran its store")
				}
				entries += n
			}
			b.ReportMetric(float64(entries)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkOpen opens a recording of a million events in one segment, and finds a request in it: in frames of a second,
// and as large as frames get.
func BenchmarkOpen(b *testing.B) {
	events := sample(1_000_000)
	for name, span := range map[string]event.Time{"seconds": event.Time(time.Second), "large": event.MaxTime} {
		path := b.TempDir() + "/r"
		if err := os.WriteFile(path, taped(b, events, span), fileMode); err != nil {
			b.Fatal(err)
		}
		for _, find := range []bool{false, true} {
			b.Run(map[bool]string{false: "only ", true: "and find a request "}[find]+name, func(b *testing.B) {
				for b.Loop() {
					r, err := Open(path)
					if err != nil {
						b.Fatal(err)
					}
					if find {
						if _, err := r.FindRequest(0, 1000); err != nil {
							b.Fatal(err)
						}
					}
					if err := r.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
