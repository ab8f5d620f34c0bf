// Package recording records the events of a session to a file and replays them. A recording is lines of JSON in zstd
// frames: each line is an event of the event protocol with the time at which the recorder received it.
// docs/recording-format.md describes the format.
package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
)

// Recording is an open recording with all its segments in order. It is safe for concurrent use.
type Recording struct {
	Header                     // of the first segment
	Begin, End      event.Time // of the entries; End is the time of closing if it was closed
	Segments        int
	MissingSegments int           // segments missing between the first and the last
	Dropped         event.Drops   // events dropped by the recorder
	EndReason       string        // "closed", "rotated", or the error that ended it; "" if unknown, for example while it is being written
	Bytes           int64         // of all segments
	Engines         []EngineEntry // engines of a recording of several, by number

	damage   Damage // found while opening; see Damage
	segments []*segment
	queued   func() (map[int]map[event.RequestID]event.Time, error) // see indexRequests; made once
	dec      *zstd.Decoder
}

// segment is one file of a recording.
type segment struct {
	Header
	file   io.ReaderAt
	close  func() error
	size   int64
	frames []frame    // without the header's
	begin  event.Time // of its entries
	end    event.Time // of its entries, or the time of closing
	bytes  int64      // bytes of the segments before it
}

// Open opens the recording whose first segment is the file at path, or a single later segment.
func Open(path string) (*Recording, error) {
	r, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording %s: %w", path, err)
	}
	return r, nil
}

func open(path string) (*Recording, error) {
	r, err := newRecording()
	if err != nil {
		return nil, err
	}
	if err = r.openSegment(path); err == nil && r.Segment == 0 {
		err = r.openMore(path)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// openMore opens the other segments of the recording.
func (r *Recording) openMore(path string) error {
	numbers, err := segments(path)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		name := segmentName(path, n)
		if err := r.openSegment(name); err != nil && !errors.Is(err, errForeign) && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("segment %s: %w", name, err)
		}
	}
	return nil
}

// errForeign is returned for a segment of another recording.
var errForeign = errors.New("it belongs to another recording")

func (r *Recording) openSegment(name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil {
		err = r.addSegment(f, info.Size(), f.Close)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

func newRecording() (*Recording, error) {
	dec, err := newDecoder()
	r := &Recording{dec: dec}
	r.queued = sync.OnceValues(r.indexRequests)
	return r, err
}

// addSegment adds a file as the next segment and finds its frames.
func (r *Recording) addSegment(file io.ReaderAt, size int64, closer func() error) error {
	s := &segment{file: file, close: closer, size: size, bytes: r.Bytes}
	sc := r.scanner(s)
	h, err := sc.readHeader()
	if err != nil {
		return err
	}
	if len(r.segments) > 0 {
		last := r.segments[len(r.segments)-1]
		if h.ID != r.ID || h.Segment <= last.Segment || h.MultiEngine != r.MultiEngine {
			return errForeign
		}
		r.MissingSegments += h.Segment - last.Segment - 1
	} else {
		r.Header = h
	}
	s.Header, s.begin, s.end = h, h.Start, h.Start
	r.EndReason = ""
	if err := r.index(s, sc); err != nil {
		return err
	}
	if err := s.limits(sc); err != nil {
		return err
	}
	r.damage.Bytes += sc.damage.Bytes
	r.damage.Torn += sc.damage.Torn
	if len(r.segments) == 0 {
		r.Begin = s.begin
	}
	r.Begin, r.End = min(r.Begin, s.begin), max(r.End, s.end)
	r.segments = append(r.segments, s)
	r.Segments++
	r.Bytes += size
	return nil
}

// index finds the frames of a segment and reads its notes, which are in small frames of their own.
func (r *Recording) index(s *segment, sc *scanner) error {
	for {
		f, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		s.frames = append(s.frames, f)
		if f.size > maxNotes {
			continue
		}
		lines, _, err := sc.read(f)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(lines) {
			n, ok := parseNote(line)
			if !ok || n.Type == NoteState {
				break
			}
			r.applyNote(n)
			if n.Type == NoteEnd {
				s.end = max(s.end, n.At)
			}
		}
	}
}

// limits finds the times of the first and the last event of a segment after its state.
func (s *segment) limits(sc *scanner) error {
	for _, f := range s.frames {
		first, last, err := sc.times(f)
		if err != nil {
			return err
		}
		if first != noTime {
			s.begin, s.end = first, max(s.end, last)
			break
		}
	}
	for _, f := range slices.Backward(s.frames) {
		first, last, err := sc.times(f)
		if err != nil {
			return err
		}
		if first != noTime {
			s.end = max(s.end, last)
			break
		}
	}
	return nil
}

// noTime marks a frame without events.
const noTime = event.Time(math.MinInt64)

// times returns the times of the first and the last event of a frame, noTime if it has none or is a state.
func (s *scanner) times(f frame) (first, last event.Time, err error) {
	first = noTime
	lines, _, err := s.read(f)
	for line := range bytes.Lines(lines) {
		if n, ok := parseNote(line); ok && n.Type == NoteState {
			return noTime, noTime, nil
		}
		if e, ok := parseLine(line); ok {
			if first == noTime {
				first = e.At
			}
			last = max(e.At, first)
		}
	}
	return first, last, err
}

// applyNote applies a note; its counts are cumulative.
func (r *Recording) applyNote(n *Note) {
	for k, c := range n.drops() {
		r.Dropped[k] = max(r.Dropped[k], c)
	}
	switch n.Type {
	case NoteEnd:
		r.EndReason = n.Reason
	case NoteEngine:
		r.addEngine(n.Engine, n.EngineEntry)
	}
}

func (r *Recording) scanner(s *segment) *scanner {
	return &scanner{file: s.file, size: s.size, dec: r.dec}
}

// Close closes the files.
func (r *Recording) Close() error {
	var err error
	for _, s := range r.segments {
		err = errors.Join(err, s.close())
	}
	r.dec.Close()
	return err
}

// Damage returns the damage that the places of the frames show. A Cursor also finds damage in the frames.
func (r *Recording) Damage() Damage { return r.damage }
