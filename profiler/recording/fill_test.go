package recording

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestFill: a recording of a source that reads the past has all its events in order, however many, in memory or in a file.
func TestFill(t *testing.T) {
	const n = 3 * queueSize
	source := func(sink event.Sink) error {
		sink.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "past", Epoch: 1e18}})
		for i := range n {
			at := event.Time(i) * 1000
			if i%7 == 3 { // from another connection, a moment ago
				at -= 500
			}
			sink.Emit(event.Event{Kind: event.KindLog, At: at, Layer: -1, Text: "event"})
		}
		return nil
	}
	for _, path := range []string{"", filepath.Join(t.TempDir(), "past.llmtop")} {
		open, err := Fill(path, RecordOptions{Program: "test"}, source)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it can be opened again
			rec, err := open()
			if err != nil {
				t.Fatal(err)
			}
			events, last := 0, event.Time(0)
			for c := rec.Cursor(0); ; {
				e, err := c.Next()
				if err != nil {
					break
				}
				if e.At < last {
					t.Fatalf("%q: event %d arrived before the one before it", path, events)
				}
				if last = e.At; e.Note == nil {
					events++
				}
			}
			if events != n+1 || rec.Epoch != 1e18 || rec.EndReason != "closed" || rec.End != (n-1)*1000 || rec.Dropped.Total() != 0 {
				t.Errorf("%q: %d events, epoch %d, ended %q at %v", path, events, rec.Epoch, rec.EndReason, rec.End)
			}
			if err := rec.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFillFails: the error of the source is returned, an empty source is one, and no file is left behind.
func TestFillFails(t *testing.T) {
	broken, path := errors.New("broken"), filepath.Join(t.TempDir(), "past.llmtop")
	for want, source := range map[error]func(event.Sink) error{
		broken:     func(event.Sink) error { return broken },
		errNothing: func(event.Sink) error { return nil },
	} {
		for _, path := range []string{"", path} {
			if _, err := Fill(path, RecordOptions{}, source); !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", path, err, want)
			}
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}
