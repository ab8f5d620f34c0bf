package recording

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
)

// errNothing is the error of a source without events.
var errNothing = errors.New("nothing to record")

// Fill records all events of a source that reads what happened earlier, such as a file of packets: to path, or in memory
// if that is "". It waits for the source instead of dropping events. They arrive at the latest time that the source has
// reached, and the wall clock is that of its first introduction. Fill returns a function that opens the recording; it may
// be called again. Its errors are those of the source, or that the file cannot be written.
func Fill(path string, opt RecordOptions, source func(event.Sink) error) (open func() (*Recording, error), err error) {
	var out output = new(buffer)
	if path != "" {
		if out, err = claim(path, opt.Replace); err != nil {
			return nil, fmt.Errorf("record to %s: %w", path, err)
		}
	}
	f := filler{out: out, opt: opt}
	f.opt.SegmentBytes, f.opt.Now = math.MaxInt64, func() event.Time { return f.now }
	err = source(event.SinkFunc(f.emit))
	if ended := f.end(); err == nil {
		err = ended
	}
	if err = errors.Join(err, out.Close()); err != nil {
		if path != "" {
			err = errors.Join(err, os.Remove(path))
		}
		return nil, err
	}
	if m, ok := out.(*buffer); ok {
		return m.open, nil
	}
	return func() (*Recording, error) { return Open(path) }, nil
}

// filler records the events of Fill.
type filler struct {
	out output
	opt RecordOptions
	r   *Recorder // from the first event on
	now event.Time
	err error // the first one
}

func (f *filler) emit(e event.Event) {
	if f.err != nil {
		return
	}
	if f.r == nil {
		if p, ok := e.Data.(*event.EngineInfo); ok {
			f.opt.Epoch = p.Epoch
		}
		if f.r, f.err = recorderTo(f.out, "", f.opt); f.err != nil {
			return
		}
	}
	if len(f.r.block.lines) >= blockSize {
		f.err = f.r.write()
	}
	f.now = max(f.now, e.At)
	f.r.add(&catchup.Entry{Event: e, Arrived: f.now})
}

// end completes the recording.
func (f *filler) end() error {
	if f.r == nil {
		return errNothing
	}
	if f.err == nil {
		f.err = f.r.write()
	}
	if f.err == nil {
		f.err = f.r.out.end(f.r.note(NoteEnd, endReason(nil), f.now))
	}
	return f.err
}

// buffer is the file of a recording in memory.
type buffer struct{ b []byte }

// open opens the recording.
func (m *buffer) open() (*Recording, error) {
	r, err := newRecording()
	if err == nil {
		err = r.addSegment(m, int64(len(m.b)), m.Close)
	}
	return r, err
}

// ReadAt implements io.ReaderAt.
func (m *buffer) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(b, m.b[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements output. A recorder appends.
func (m *buffer) WriteAt(b []byte, off int64) (int, error) {
	m.b = append(m.b[:off], b...)
	return len(b), nil
}

// Truncate implements output.
func (m *buffer) Truncate(size int64) error {
	m.b = slices.Delete(m.b, int(size), len(m.b))
	return nil
}

// Sync implements output.
func (*buffer) Sync() error { return nil }

// Close implements output.
func (*buffer) Close() error { return nil }
