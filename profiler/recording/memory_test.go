package recording

import (
	"fmt"
	"io"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

// memory is a segment in memory.
type memory struct{ b []byte }

// WriteAt implements output for writes at the end.
func (m *memory) WriteAt(b []byte, off int64) (int, error) {
	m.b = append(m.b[:off], b...)
	return len(b), nil
}

// Truncate implements output.
func (m *memory) Truncate(size int64) error {
	m.b = m.b[:size]
	return nil
}

// Sync implements output.
func (m *memory) Sync() error { return nil }

// Close implements output.
func (m *memory) Close() error { return nil }

// inMemory returns a writer of a segment in memory that has its header.
func inMemory(t testing.TB, h Header) (*writer, *memory) {
	t.Helper()
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	file := new(memory)
	w := &writer{header: h, first: file, enc: enc}
	if err := w.begin(file, h.Start); err != nil {
		t.Fatal(err)
	}
	return w, file
}

// taped returns a recording of events, each received when it happened, in frames of at most a span of time.
func taped(t testing.TB, events []event.Event, span event.Time) []byte {
	t.Helper()
	w, file := inMemory(t, Header{ID: "r"})
	var b block
	for i := range events {
		e := &events[i]
		if err := b.add(&catchup.Entry{Event: *e, Arrived: e.At}); err != nil {
			t.Fatal(err)
		}
		if len(b.lines) >= blockSize || i == len(events)-1 || events[i+1].At-b.first > span {
			if err := w.frame(b.lines); err != nil {
				t.Fatal(err)
			}
			b.reset()
		}
	}
	if err := w.end(Note{Type: NoteEnd, Reason: "closed", Events: uint64(len(events)), At: events[len(events)-1].At}); err != nil {
		t.Fatal(err)
	}
	return file.b
}

// segmentOf returns a segment of frames with the given lines, which need not be those of a recorder.
func segmentOf(t testing.TB, frames ...string) []byte {
	t.Helper()
	w, file := inMemory(t, Header{ID: "r"})
	for _, lines := range frames {
		if err := w.frame([]byte(lines)); err != nil {
			t.Fatal(err)
		}
	}
	return file.b
}

// recordingOf opens a single segment of the given size.
func recordingOf(file io.ReaderAt, size int64) (*Recording, error) {
	r, err := newRecording()
	if err != nil {
		return nil, err
	}
	if err := r.addSegment(file, size, func() error { return nil }); err != nil {
		r.dec.Close()
		return nil, fmt.Errorf("read recording: %w", err)
	}
	return r, nil
}
