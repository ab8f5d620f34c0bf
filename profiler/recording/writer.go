package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
)

// output is the file of a segment.
type output interface {
	WriteAt(b []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// create creates the file of a segment after the first.
func create(name string) (output, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
}

// writer writes frames to segments. It is used from one goroutine. After an error it may only be closed.
type writer struct {
	path   string
	header Header
	size   int64 // largest segment in bytes, exceeded by one frame at most
	keep   int   // segments
	create func(name string) (output, error)

	first output // the first segment, which stays open to hold the lock
	file  output // of the current segment
	off   int64  // offset of the next frame
	begun int64  // offset of the first frame after the segment's state
	total int64  // bytes written in all segments
	enc   *zstd.Encoder
	buf   []byte

	engines []EngineEntry // engines listed in the recording
}

// newEncoder returns an encoder that compresses one block at a time, with a checksum, on the caller's goroutine.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(blockSize), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true), zstd.WithSingleSegment(true))
}

// begin writes the header of a segment.
func (w *writer) begin(file output, start event.Time) error {
	w.file, w.off, w.header.Start = file, 0, start
	b, err := w.header.encode()
	if err != nil {
		return err
	}
	if err := w.frame(b); err != nil {
		return err
	}
	if err := w.writeEngines(0, start); err != nil {
		return err
	}
	w.begun = w.off
	return nil
}

// append writes at the end. If that fails, it truncates what was written of b.
func (w *writer) append(b []byte) error {
	if _, err := w.file.WriteAt(b, w.off); err != nil {
		return errors.Join(err, w.file.Truncate(w.off))
	}
	w.off += int64(len(b))
	w.total += int64(len(b))
	return nil
}

// full reports whether the next frame belongs to the next segment.
func (w *writer) full() bool { return w.off > w.begun && w.off >= w.size }

// rotate ends the segment with a note and starts the next one with the state.
func (w *writer) rotate(end Note, start event.Time, state *block) error {
	next, err := w.create(segmentName(w.path, w.header.Segment+1))
	if err != nil {
		return err
	}
	previous := w.file
	err = w.end(end)
	w.header.Segment++
	w.file, w.off = next, 0
	if previous != w.first {
		err = errors.Join(err, previous.Close())
	}
	if err == nil {
		err = w.begin(next, start)
	}
	if err == nil && state.events > 0 {
		err = w.frame(state.lines)
	}
	if err != nil {
		return err
	}
	w.begun = w.off
	if oldest := w.header.Segment + 1 - w.keep; oldest > 0 { // the first segment has the start of the session and is kept
		return os.Remove(segmentName(w.path, oldest))
	}
	return nil
}

// notes writes notes as frames of at most maxNotes bytes.
func (w *writer) notes(notes []Note) error {
	var lines []byte
	for i := range notes {
		line, err := json.Marshal(&notes[i])
		if err != nil {
			return err
		}
		if len(lines) > 0 && len(lines)+len(line) >= maxNotes {
			if err := w.frame(lines); err != nil {
				return err
			}
			lines = lines[:0]
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	return w.frame(lines)
}

// frame writes lines as a frame.
func (w *writer) frame(lines []byte) error {
	if w.buf = w.enc.EncodeAll(lines, w.buf[:0]); max(len(lines), len(w.buf)) > maxFrame {
		return fmt.Errorf("frame of %d bytes exceeds %d", len(lines), maxFrame)
	}
	return w.append(w.buf)
}

// end writes the last note of a segment and syncs it to disk.
func (w *writer) end(n Note) error {
	if err := w.notes([]Note{n}); err != nil {
		return err
	}
	return w.file.Sync()
}

// close closes the files.
func (w *writer) close() error {
	err := w.first.Close()
	if w.file != w.first {
		err = errors.Join(err, w.file.Close())
	}
	return err
}
