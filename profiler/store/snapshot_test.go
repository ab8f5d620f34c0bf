package store

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// deep copies what a snapshot refers to and its source may write again, were it shared.
func deep(s *Snapshot) Snapshot {
	out := *s
	out.Requests = nil
	for _, r := range s.Requests {
		out.Requests = append(out.Requests, (&live{view: *r, text: []byte(r.Text)}).copy())
	}
	out.Current = nil
	out.Latency.Series = append([]LatencyPoint(nil), s.Latency.Series...)
	out.Latency.Stalls = append([]Stall(nil), s.Latency.Stalls...)
	out.Throughput.Series = append([]RatePoint(nil), s.Throughput.Series...)
	out.Load = append([]Span(nil), s.Load...)
	out.Log = append([]LogLine(nil), s.Log...)
	out.Counts.Groups = append([]Group(nil), s.Counts.Groups...)
	out.Host.Series = append([]HostPoint(nil), s.Host.Series...)
	return out
}

// TestSnapshotsStayAsTheyWere compares snapshots with copies made at once, after everything in the store has changed.
func TestSnapshotsStayAsTheyWere(t *testing.T) {
	p := newPlay()
	more := func() {
		p.stage(0, event.StageLoadOpen, ms, 0)
		p.stage(0, event.StageLoadMap, ms, 0)
		id := event.RequestID(1 + len(p.ended))
		p.state(ms, id, event.StateQueued, &event.Request{Group: "g"})
		p.stage(id, event.StageTokenize, ms, 4)
		for i := range int64(MaxTokens + 20) {
			p.token(ms+i%50*ms, id, 1)
		}
		p.emit(0, event.Event{Kind: event.KindLog, Text: "line"})
		known := event.Of(.5) // absent ones are NaN in the series, which equals nothing
		process := event.Process{CPU: known, RSS: known, Read: known, Write: known}
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: known, Engine: process, Self: process}})
		p.picked(1, 2, []uint64{0, 0}, []uint64{uint64(id), 1}, [2]uint64{uint64(id)})
	}
	var taken, copies []any
	for range 12 {
		more()
		for range 2 { // with the request running, and ended
			s := p.store.Snapshot()
			c := deep(s)
			current, experts := *s.Current, *s.Experts.Hits[metric.Session][metric.Decode]
			taken = append(taken, s, s.Current, s.Experts.Hits[metric.Session][metric.Decode])
			copies = append(copies, &c, &current, &experts)
			p.state(0, event.RequestID(1+len(p.ended)), event.StateFinished, nil)
		}
	}
	for i := range taken {
		if s, ok := taken[i].(*Snapshot); ok {
			again := deep(s)
			taken[i] = &again
		}
		if !reflect.DeepEqual(taken[i], copies[i]) {
			t.Fatalf("%T %d has changed", taken[i], i)
		}
	}
}

// TestSnapshotWhileEventsCome reads snapshots while sources emit and Run applies; the race detector watches.
func TestSnapshotWhileEventsCome(t *testing.T) {
	var clock atomic.Int64
	s := New(Options{Now: func() event.Time { return event.Time(clock.Add(us)) }})
	ctx, stop := context.WithCancel(context.Background())
	var running, sources sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	for id := range event.RequestID(4) {
		sources.Go(func() {
			emit := func(e event.Event) {
				e.Req, e.At, e.Layer = id+1, event.Time(clock.Add(100*us)), -1
				s.Emit(e)
			}
			emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: &event.Request{}})
			for i := range int32(1000) {
				emit(event.Event{Kind: event.KindToken, Index: i, N: 1, Text: "w"})
				emit(event.Event{Kind: event.KindStage, Stage: event.StagePace, Dur: us})
			}
			emit(event.Event{Kind: event.KindRequest, State: event.StateFinished, Data: &event.Outcome{Generated: 1000}})
		})
	}
	done := make(chan struct{})
	go func() { sources.Wait(); close(done) }()
	for looking := true; looking; {
		select {
		case <-done:
			looking = false
		default:
		}
		if err := sound(s.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	running.Wait()
	v := s.Snapshot()
	if v.Counts.Finished != 4 || v.Counts.GeneratedTokens != 4000 || v.Lost.Total() != 0 {
		t.Errorf("%d finished with %d tokens, %d events lost; want 4 with 4000, none", v.Counts.Finished, v.Counts.GeneratedTokens, v.Lost.Total())
	}
}

func TestRunAppliesWhatComes(t *testing.T) {
	p := newPlay()
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateFinished, nil)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := p.store.Run(ctx); err != nil || len(p.ended) != 1 {
		t.Errorf("%d requests ended after the last drain (%v), want 1", len(p.ended), err)
	}
}

func TestSnapshotsOfNothing(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 0 }}).Snapshot()
	if err := sound(s); err != nil || s.Current != nil || len(s.Requests) != 0 || len(s.Verdicts) != 0 || s.Wall.IsZero() {
		t.Errorf("%+v: %v", s, err)
	}
}

func TestSnapshotIsKeptWhileNothingHappens(t *testing.T) {
	p := newPlay()
	p.engine(0)
	one := p.store.Snapshot()
	p.now += event.Time(keepFor - time.Millisecond)
	if p.store.Snapshot() != one {
		t.Error("a new snapshot although nothing came")
	}
	if p.now += event.Time(time.Millisecond); p.store.Snapshot() == one {
		t.Error("the same snapshot although its time is over")
	}
	two := p.store.Snapshot()
	p.emit(0, event.Event{Kind: event.KindLog})
	if three := p.store.Snapshot(); three == two || three.Version <= two.Version {
		t.Error("the same snapshot although an event came")
	}
}
