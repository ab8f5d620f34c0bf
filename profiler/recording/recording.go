package recording

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
)

// indexStep is how many bytes of a segment one index point covers at least: 24 bytes of index per 64 KB.
const indexStep = 64 << 10

// Recording is an open recording with all its segments in order. It is safe for concurrent use.
type Recording struct {
	Header                     // of the first segment
	Begin, End      event.Time // of the entries; End is the time of closing if it was closed
	Entries         uint64
	Segments        int
	MissingSegments int           // segments missing between the first and the last
	Dropped         event.Drops   // events dropped by the recorder
	EndReason       string        // "closed", "rotated", or the error that ended it; "" if unknown, for example while it is being written
	Bytes           int64         // of all segments
	Engines         []EngineEntry // engines of a recording of several, by number

	damage   Damage // found while opening; see Damage
	segments []*segment
	dec      *zstd.Decoder
}

// segment is one file of a recording.
type segment struct {
	Header
	file   io.ReaderAt
	close  func() error
	size   int64
	frames int64 // offset of the first frame
	index  []point
	begin  event.Time // of its entries
	end    event.Time // of its entries, or the time of closing
	bytes  int64      // bytes of the segments before it
}

// point is an index point for the frames from off up to the next point.
type point struct {
	off     int64
	idRange // of the requests queued in them
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
	f, err := os.Open(name)
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
	return &Recording{dec: dec}, err
}

// addSegment adds a file as the next segment and scans its frame headers.
func (r *Recording) addSegment(file io.ReaderAt, size int64, closer func() error) error {
	h, n, err := readHeader(file)
	if err != nil {
		return err
	}
	if len(r.segments) > 0 {
		last := r.segments[len(r.segments)-1]
		if h.Recording != r.Recording || h.Segment <= last.Segment || h.MultiEngine != r.MultiEngine {
			return errForeign
		}
		r.MissingSegments += h.Segment - last.Segment - 1
	} else {
		r.Header = h
	}
	s := &segment{Header: h, file: file, close: closer, size: size, frames: n, bytes: r.Bytes, begin: h.Start, end: h.Start}
	if err := r.scan(s); err != nil {
		return err
	}
	if len(r.segments) == 0 {
		r.Begin = s.begin
	}
	r.Begin, r.End = min(r.Begin, s.begin), max(r.End, s.end)
	r.segments = append(r.segments, s)
	r.Segments++
	r.Bytes += size
	return nil
}

// scan builds the index of a segment and reads its notes.
func (r *Recording) scan(s *segment) error {
	sc := r.scanner(s)
	seen := false
	r.EndReason = ""
	for {
		f, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch f.kind {
		case frameEvents:
			r.Entries += uint64(f.entries)
			if !seen {
				s.begin, s.end, seen = f.first, f.last, true
			}
			s.end = max(s.end, f.last)
			s.add(sc.at-frameSize, &f)
		case frameState:
			s.add(sc.at-frameSize, &f)
		case frameNote:
			body, err := sc.read(&f)
			if err != nil {
				return err
			}
			if n, ok := parseNote(body); ok {
				r.applyNote(&n)
				if n.Type == NoteEnd {
					s.end = max(s.end, f.last)
				}
			}
		}
	}
	sc.damage.Frames = 0 // of notes; reading the segment counts them again
	r.damage.Torn += sc.damage.Torn
	r.damage.Bytes += sc.damage.Bytes
	return nil
}

// applyNote applies a note; its counts are cumulative.
func (r *Recording) applyNote(n *Note) {
	for k, c := range n.drops() {
		r.Dropped[k] = max(r.Dropped[k], c)
	}
	switch n.Type {
	case NoteEnd:
		r.EndReason = n.Reason
	case NoteEngines:
		r.Engines = mergeEngines(r.Engines, n)
	}
}

// add adds a frame to the index.
func (s *segment) add(off int64, f *frame) {
	n := len(s.index)
	if n == 0 || off-s.index[n-1].off >= indexStep {
		s.index = append(s.index, point{off: off})
		n++
	}
	if f.high != 0 {
		p := &s.index[n-1]
		p.extend(f.low)
		p.extend(f.high)
	}
}

func (r *Recording) scanner(s *segment) *scanner {
	return &scanner{file: s.file, size: s.size, off: s.frames, dec: r.dec}
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

// Damage returns the damage that frame headers show. A Cursor also finds damage in the bodies.
func (r *Recording) Damage() Damage { return r.damage }
