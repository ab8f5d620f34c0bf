package recording

import (
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
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

// inMemory writes events, sorted by wall clock, as a recording whose time 0 is the header's epoch.
func inMemory(h Header, events []event.Event, codec Codec) (*memory, error) {
	enc, err := newEncoder()
	if err != nil {
		return nil, err
	}
	file := new(memory)
	w := &writer{header: h, first: file, enc: enc}
	if err := w.begin(file, h.Start); err != nil {
		return nil, err
	}
	var b block
	var line []byte
	for i := range events {
		e := &events[i]
		e.At -= event.Time(h.Epoch)
		if line, err = codec.Append(line[:0], e); err != nil {
			return nil, err
		}
		b.addEvent(e, e.At, 0, line)
		if len(b.body) >= blockSize || i == len(events)-1 {
			if err := w.block(frameEvents, &b); err != nil {
				return nil, err
			}
			b.reset()
		}
	}
	end := Note{Type: NoteEnd, Reason: "closed", Events: uint64(len(events))}
	return file, w.end(end, events[len(events)-1].At)
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
