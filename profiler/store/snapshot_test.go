package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// format returns everything that a snapshot contains as text.
func format(s *Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v", *s)
	for _, r := range s.Requests {
		fmt.Fprintf(&b, "%+v", *r)
	}
	for w := range metric.NumWindows {
		for p := range metric.NumPhases {
			fmt.Fprintf(&b, "%+v", *s.Experts.Hits(w, p))
		}
	}
	return b.String()
}

// churn changes everything in the store, by more than a quarter of each bound except MaxRequests.
func churn(p *session, round int) {
	p.stage(0, event.StageLoadOpen, ms, 0)
	p.stage(0, event.StageLoadMap, ms, 0)
	p.state(ms, event.RequestID(round+2), event.StateQueued, &event.Request{Group: fmt.Sprint("g", round)})
	p.state(ms, event.RequestID(round+2), event.StateFinished, nil)
	p.emit(0, event.Event{Kind: event.KindStage, Stage: event.StageAttention, Req: 1, Dur: ms})
	p.stage(1, event.StageTokenize, ms, int32(round))
	for i := range int64(MaxGaps/4 + 100) {
		p.token(ms+i%10/9*9*ms, 1, 1)
	}
	for range SeriesLen / 3 {
		p.emit(sec, event.Event{Kind: event.KindLog, Text: fmt.Sprint("line ", round)})
		p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.MeasuredValue(float64(round))}})
	}
	p.emitPicks(1, 2, []uint64{0, 0}, []uint64{uint64(round), 1}, [2]uint64{uint64(round)})
}

// TestSnapshotsAreImmutable checks that later events do not change a snapshot.
func TestSnapshotsAreImmutable(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	var snapshots []*Snapshot
	var before []string
	for round := range 8 {
		churn(p, round)
		s := p.store.Snapshot()
		snapshots, before = append(snapshots, s), append(before, format(s))
	}
	p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 50})
	p.store.Snapshot()
	for i, s := range snapshots {
		if format(s) != before[i] {
			t.Fatalf("snapshot %d has changed", i)
		}
	}
}

// TestSnapshotWhileEventsArrive takes snapshots while sources emit and Run applies. Run it with the race detector.
func TestSnapshotWhileEventsArrive(t *testing.T) {
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
	for polling := true; polling; {
		select {
		case <-done:
			polling = false
		default:
		}
		if err := checkSnapshot(s.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	running.Wait()
	v := s.Snapshot()
	if v.Counts.Finished != 4 || v.Counts.GeneratedTokens != 4000 || v.Drops.Total() != 0 {
		t.Errorf("%d finished with %d tokens, %d events dropped; want 4 with 4000, none", v.Counts.Finished, v.Counts.GeneratedTokens, v.Drops.Total())
	}
}

func TestRunAppliesEvents(t *testing.T) {
	p := newSession()
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateFinished, nil)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := p.store.Run(ctx); err != nil || len(p.ended) != 1 {
		t.Errorf("%d requests ended after the last drain (%v), want 1", len(p.ended), err)
	}
}

func TestSnapshotWithoutEvents(t *testing.T) {
	s := New(Options{Now: func() event.Time { return 0 }}).Snapshot()
	if err := checkSnapshot(s); err != nil || s.Current != nil || len(s.Requests) != 0 || len(s.Verdicts) != 0 || s.Wall.IsZero() {
		t.Errorf("%+v: %v", s, err)
	}
}

func TestSnapshotIsReusedWithoutEvents(t *testing.T) {
	p := newSession()
	p.engine(0)
	one := p.store.Snapshot()
	p.now += event.Time(snapshotMaxAge - time.Millisecond)
	if p.store.Snapshot() != one {
		t.Error("new snapshot without events")
	}
	if p.now += event.Time(time.Millisecond); p.store.Snapshot() == one {
		t.Error("same snapshot after snapshotMaxAge")
	}
	two := p.store.Snapshot()
	p.emit(0, event.Event{Kind: event.KindLog})
	if three := p.store.Snapshot(); three == two || three.Version <= two.Version {
		t.Error("same snapshot after an event")
	}
}
