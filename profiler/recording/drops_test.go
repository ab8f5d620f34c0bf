package recording

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestReplayShowsRecorderDrops(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Hour})
	tp.emit(event.Event{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 100}})
	tp.emit(unwritable(event.KindRequest))
	tp.emit(unwritable(event.KindStage))
	tp.emit(event.Event{Kind: event.KindLog, Text: "wanted"})
	tp.end(t)
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, tp.path, PlayOptions{Speed: Unpaced})
		defer r.stop()
		if drops := r.store.Snapshot().Drops; drops != (event.Drops{event.KindToken: 100, event.KindRequest: 1, event.KindStage: 1}) {
			t.Errorf("the store has the drops %v", drops)
		}
		if drops := r.Status().Dropped; drops != (event.Drops{event.KindRequest: 1, event.KindStage: 1}) {
			t.Errorf("the player has the drops %v", drops)
		}
	})
}

func TestUnreadableLinesAreCounted(t *testing.T) {
	file := segmentOf(t, `{"at":1,"t":"tok","a":"no time"}`+"\nno line\n")
	rec, err := recordingOf(strings.NewReader(string(file)), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlayer(rec, PlayOptions{Speed: Unpaced, StopAtEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), event.Tee{}); err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); s.Undecoded != 1 || s.Damage.Lines != 1 || !slices.Equal(s.Problems()[:1], []string{"the recording is damaged: unreadable lines: 2"}) {
		t.Errorf("status %+v with the problems %q", s, s.Problems())
	}
	if _, err := p.cursor.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// TestMissingSegmentsKeepRecorderDrops checks that a replay that starts over after missing segments still shows what the
// recorder dropped before them.
func TestMissingSegmentsKeepRecorderDrops(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Millisecond, SegmentBytes: 1, Segments: 2})
	tp.emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native"}})
	tp.emit(unwritable(event.KindStage))
	for n := range uint64(5) {
		tp.token(1, 1)
		tp.settle(t, n+2)
	}
	tp.end(t)
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, tp.path, PlayOptions{Speed: Unpaced})
		defer r.stop()
		if s := r.Status(); s.MissingSegments == 0 || r.fresh != 2 {
			t.Fatalf("%d segments are missing, %d stores", s.MissingSegments, r.fresh)
		}
		if drops := r.store.Snapshot().Drops; drops != (event.Drops{event.KindStage: 1}) {
			t.Errorf("the store has the drops %v", drops)
		}
	})
}
