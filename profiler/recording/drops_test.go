package recording

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestReplayShowsRecorderDrops(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Hour})
	tp.emit(event.Event{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 100}})
	tp.emit(event.Event{Kind: event.KindToken, Text: "unwanted"})
	tp.emit(event.Event{Kind: event.KindLog, Text: "unwanted"})
	tp.emit(event.Event{Kind: event.KindLog, Text: "wanted"})
	tp.end(t)
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, tp.path, PlayOptions{Speed: Unpaced})
		defer r.stop()
		if drops := r.store.Snapshot().Drops; drops != (event.Drops{event.KindToken: 101, event.KindLog: 1}) {
			t.Errorf("the store has the drops %v", drops)
		}
		if drops := r.Status().Dropped; drops != (event.Drops{event.KindToken: 1, event.KindLog: 1}) {
			t.Errorf("the player has the drops %v", drops)
		}
	})
}

func TestUnreadableLinesAreCounted(t *testing.T) {
	file := segmentOf(t, func(f *frame) []byte {
		b := block{}
		b.add(1, 0, []byte("no event"))
		*f = b.frame
		f.kind = frameEvents
		return b.body
	})
	rec, err := recordingOf(strings.NewReader(string(file)), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	rec.Codec = "gob"
	p, err := NewPlayer(rec, PlayOptions{Codec: newPlain, Speed: Unpaced, StopAtEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), event.Discard{}); err != nil {
		t.Fatal(err)
	}
	if n := p.Status().Undecoded; n != 1 {
		t.Errorf("%d undecoded lines, want 1", n)
	}
	if _, err := p.cursor.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// other is a codec of another name.
type other struct{ plain }

func (other) Name() string { return "other" }

func TestOtherCodecsAreRefused(t *testing.T) {
	rec, err := Open(ticking(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if _, err := NewPlayer(rec, PlayOptions{Codec: func() Codec { return other{} }}); err == nil || !strings.Contains(err.Error(), `"gob"`) {
		t.Errorf("another codec: %v", err)
	}
}

// TestMissingSegmentsKeepRecorderDrops checks that a replay that starts over after missing segments still shows what the
// recorder dropped before them.
func TestMissingSegmentsKeepRecorderDrops(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Millisecond, SegmentBytes: 1, Segments: 2})
	tp.emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native"}})
	tp.emit(event.Event{Kind: event.KindLog, Text: "unwanted"})
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
		if drops := r.store.Snapshot().Drops; drops != (event.Drops{event.KindLog: 1}) {
			t.Errorf("the store has the drops %v", drops)
		}
	})
}
