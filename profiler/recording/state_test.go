package recording

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestStateIsBounded(t *testing.T) {
	var s state
	const more = 7
	for id := event.RequestID(1); id <= maxLive+more; id++ {
		s.apply(&arrival{event.Time(id), event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued}, 0})
		s.apply(&arrival{event.Time(id), event.Event{Kind: event.KindStage, Stage: event.StageLoadMap, At: event.Time(id)}, 0})
	}
	const last = event.RequestID(maxLive)
	for i := range 3 * maxBegin {
		s.apply(&arrival{event.Time(i), event.Event{Kind: event.KindStage, Stage: event.StageRouter, Req: last}, 0})
	}
	for i := range 3 * tokenStep * maxSpread {
		s.apply(&arrival{event.Time(i), event.Event{Kind: event.KindToken, Req: last, N: 1}, 0})
	}
	if len(s.live) != maxLive || s.untracked != more || s.live[liveKey{0, 1}] == nil || len(s.engines[0].load) != maxLoad {
		t.Errorf("%d requests, %d untracked, %d stages of the load", len(s.live), s.untracked, len(s.engines[0].load))
	}
	if n, most := len(s.events()), maxLive+maxLoad+leastBegin+1+maxSpread*fullDetail/maxLive; n > most {
		t.Errorf("the state has %d events, more than %d", n, most)
	}
	for id := event.RequestID(2); id <= maxLive+more; id++ {
		s.apply(&arrival{0, event.Event{Kind: event.KindRequest, Req: id, State: event.StateFailed}, 0})
	}
	if len(s.live) != 1 || s.untracked != 0 {
		t.Errorf("%d requests after all but one ended, %d untracked", len(s.live), s.untracked)
	}
	for id := event.RequestID(2); id <= 3*maxLive; id++ {
		s.apply(&arrival{0, event.Event{Kind: event.KindRequest, Req: maxLive + id, State: event.StateQueued}, 0})
		s.apply(&arrival{0, event.Event{Kind: event.KindRequest, Req: maxLive + id, State: event.StateFailed}, 0})
	}
	if len(s.live) != 1 || len(s.order) > 2*maxLive || s.live[liveKey{0, 1}] == nil {
		t.Errorf("%d requests, %d in order", len(s.live), len(s.order))
	}
}

// TestStateOfACrowd checks that the state of the most tracked requests fits into a segment, and that the log reports
// the untracked ones.
func TestStateOfACrowd(t *testing.T) {
	r, err := newRecorder(t.TempDir()+"/r", RecordOptions{Codec: newWire(), Now: func() event.Time { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.abandon()
	const more = 3
	apply := func(id event.RequestID, e event.Event) {
		e.Req, e.Layer, e.At = id, -1, event.Time(1e9)+event.Time(id)
		r.state.apply(&arrival{e.At, e, 0})
	}
	for id := event.RequestID(1); id <= maxLive+more; id++ {
		apply(id, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: &event.Request{Group: "a group", MaxTokens: 1000}})
		apply(id, event.Event{Kind: event.KindRequest, State: event.StateDispatched})
		apply(id, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Dur: 1e6, N: 1000})
		for range 1000 {
			apply(id, event.Event{Kind: event.KindToken, N: 1, Text: " word"})
		}
	}
	b := r.stateBlock()
	queued, tokens, logLine := 0, 0, ""
	for _, e := range r.state.events() {
		switch {
		case e.Kind == event.KindRequest && e.State == event.StateQueued:
			queued++
		case e.Kind == event.KindToken:
			tokens += int(e.N)
		}
	}
	if i := strings.LastIndex(string(b.body), "this segment"); i >= 0 {
		logLine = string(b.body)[i:]
	}
	if queued != maxLive || tokens != 1000*maxLive || !strings.Contains(logLine, "lacks 3 running requests, and 0 events") {
		t.Errorf("%d requests with %d tokens in %d KB; log line %q", queued, tokens, len(b.body)>>10, logLine)
	}
}

func TestSpreadAddsUp(t *testing.T) {
	for _, n := range []int64{0, 1, 5, tokenStep, tokenStep + 1, 10_000} {
		sum, at := int64(0), event.Time(100)
		for _, e := range spread(100, 1100, n, 7, tokenStep, maxSpread) {
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

// stuck is a disk whose writes hang until it is released.
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

// TestHangingDiskBlocksNoEmitter emits from several goroutines while the disk hangs. If Emit blocked, the test would
// not end.
func TestHangingDiskBlocksNoEmitter(t *testing.T) {
	release := make(chan struct{})
	tp := record(t, RecordOptions{Flush: time.Millisecond, first: func(o output) output { return &stuck{o, release} }})
	const each, writers = queueSize / 2, 4
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				tp.Emit(event.Event{Kind: event.KindToken, Req: 1, N: 1})
			}
		})
	}
	wg.Wait()
	drops := tp.Status().Dropped
	if drops[event.KindToken] == 0 || drops[event.KindToken] != drops.Total() {
		t.Errorf("dropped %v", drops)
	}
	close(release)
	tp.end(t)
	s := tp.Status()
	if sum := s.Events + s.Dropped.Total(); sum != each*writers {
		t.Errorf("%d written, %d dropped: %d of %d", s.Events, s.Dropped.Total(), sum, each*writers)
	}
	if r, got, _ := read(t, tp.path); uint64(len(got)) != s.Events || r.Dropped != s.Dropped {
		t.Errorf("read %d, dropped %v; want %d, %v", len(got), r.Dropped, s.Events, s.Dropped)
	}
}

func TestSegmentCreateErrorEndsTheRecording(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Millisecond, SegmentBytes: 1, create: func(string) (output, error) { return nil, errFull }})
	tp.token(1, 5)
	<-tp.Done()
	err := tp.Close()
	if !errors.Is(err, errFull) || tp.Status().Events == 0 {
		t.Errorf("%v after %d events", err, tp.Status().Events)
	}
	r, got, c := read(t, tp.path)
	if uint64(len(got)) != tp.Status().Events || c.Damage() != (Damage{}) || !strings.Contains(r.EndReason, errFull.Error()) {
		t.Errorf("read %d events, ended by %q", len(got), r.EndReason)
	}
}
