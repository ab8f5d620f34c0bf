package trace

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestStateIsBounded(t *testing.T) {
	var s state
	for id := event.RequestID(1); id <= 20*maxLive; id++ {
		s.apply(&arrival{event.Time(id), event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued}, 0})
		s.apply(&arrival{event.Time(id), event.Event{Kind: event.KindStage, Stage: event.StageLoadMap, At: event.Time(id)}, 0})
	}
	last := event.RequestID(20 * maxLive)
	for i := range 3 * maxBegin {
		s.apply(&arrival{event.Time(i), event.Event{Kind: event.KindStage, Stage: event.StageRouter, Req: last}, 0})
	}
	for i := range 3 * tokenStep * maxSpread {
		s.apply(&arrival{event.Time(i), event.Event{Kind: event.KindToken, Req: last, N: 1}, 0})
	}
	if len(s.live) != maxLive || len(s.order) != maxLive || len(s.sources[0].load) != maxLoad {
		t.Errorf("%d requests, %d in order, %d stages of the load", len(s.live), len(s.order), len(s.sources[0].load))
	}
	if n, most := len(s.events()), maxLive+maxLoad+maxBegin+1+maxSpread; n > most {
		t.Errorf("the state has %d events, more than %d", n, most)
	}
	for _, r := range slices.Clone(s.order[1:]) {
		s.apply(&arrival{0, event.Event{Kind: event.KindRequest, Req: r.id, State: event.StateFailed}, 0})
	}
	if len(s.live) != 1 || len(s.order) != 1 {
		t.Errorf("%d requests after all but one ended", len(s.live))
	}
}

func TestSpreadAddsUp(t *testing.T) {
	for _, n := range []int64{0, 1, 5, tokenStep, tokenStep + 1, 10_000} {
		sum, at := int64(0), event.Time(100)
		for _, e := range spread(100, 1100, n, 7, tokenStep) {
			if e.Index != int32(7+sum) || e.At <= at {
				t.Errorf("of %d: %d tokens at %d with index %d after %d", n, e.N, e.At, e.Index, sum)
			}
			sum, at = sum+int64(e.N), e.At
		}
		if sum != n || n > 0 && at != 1100 {
			t.Errorf("%d tokens up to %d, want %d", sum, at, n)
		}
	}
}

// stuck is a disk that hangs until it is released.
type stuck struct {
	output
	release chan struct{}
}

func (d *stuck) WriteAt(b []byte, off int64) (int, error) {
	if off > 0 {
		<-d.release
	}
	return d.output.WriteAt(b, off)
}

// TestHangingDiskStopsNobody emits from several goroutines while the disk hangs. If that blocked, the test would not end.
func TestHangingDiskStopsNobody(t *testing.T) {
	release := make(chan struct{})
	tp := record(t, RecordOptions{Flush: time.Millisecond, first: func(o output) output { return &stuck{o, release} }})
	const each, writers = queueSize, 4
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				tp.Emit(event.Event{Kind: event.KindToken, Req: 1, N: 1})
			}
		})
	}
	wg.Wait()
	lost := tp.Status().Lost
	if lost[event.KindToken] == 0 || lost[event.KindToken] != lost.Total() {
		t.Errorf("lost %v", lost)
	}
	close(release)
	tp.end(t)
	s := tp.Status()
	if sum := s.Events + s.Lost.Total(); sum != each*writers {
		t.Errorf("%d written, %d lost: that is %d of %d", s.Events, s.Lost.Total(), sum, each*writers)
	}
	if r, got, _ := read(t, tp.path); uint64(len(got)) != s.Events || r.Lost != s.Lost {
		t.Errorf("read %d, lost %v; want %d, %v", len(got), r.Lost, s.Events, s.Lost)
	}
}

func TestSegmentThatCannotBeMadeEndsTheRecording(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Millisecond, SegmentBytes: 1, create: func(string) (output, error) { return nil, errFull }})
	tp.token(1, 5)
	<-tp.Done()
	err := tp.Close()
	if !errors.Is(err, errFull) || tp.Status().Events == 0 {
		t.Errorf("%v after %d events", err, tp.Status().Events)
	}
	r, got, c := read(t, tp.path)
	if uint64(len(got)) != tp.Status().Events || c.Damage() != (Damage{}) || !strings.Contains(r.Why, errFull.Error()) {
		t.Errorf("read %d events, ended by %q", len(got), r.Why)
	}
}
