package recording

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

// TestStateOfACrowd checks that the state of the most tracked requests fits into a segment, and that the log reports
// the untracked ones.
func TestStateOfACrowd(t *testing.T) {
	r, err := newRecorder(t.TempDir()+"/r", RecordOptions{Now: func() event.Time { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.abandon()
	const more = 3
	apply := func(id event.RequestID, e event.Event) {
		e.Req, e.Layer, e.At = id, -1, event.Time(1e9)+event.Time(id)
		r.state.Apply(&e, e.At, 0)
	}
	for id := event.RequestID(1); id <= catchup.MaxLive+more; id++ {
		apply(id, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: &event.Request{Group: "a group", MaxTokens: 1000}})
		apply(id, event.Event{Kind: event.KindRequest, State: event.StateDispatched})
		apply(id, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Dur: 1e6, N: 1000})
		for range 1000 {
			apply(id, event.Event{Kind: event.KindToken, N: 1, Text: " word"})
		}
	}
	b := r.stateBlock()
	queued, tokens, logLine := 0, 0, ""
	for _, e := range r.state.All() {
		switch {
		case e.Kind == event.KindRequest && e.State == event.StateQueued:
			queued++
		case e.Kind == event.KindToken:
			tokens += int(e.N)
		}
	}
	if i := strings.LastIndex(string(b.lines), "this segment"); i >= 0 {
		logLine = string(b.lines)[i:]
	}
	if queued != catchup.MaxLive || tokens != 1000*catchup.MaxLive || !strings.Contains(logLine, "lacks 3 running requests, and 0 events") {
		t.Errorf("%d requests with %d tokens in %d KB; log line %q", queued, tokens, len(b.lines)>>10, logLine)
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
