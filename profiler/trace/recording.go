package trace

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
)

// indexStep is how many bytes of a segment one point of its index stands for at least: 24 bytes of index for 64 KB.
const indexStep = 64 << 10

// Recording is a recording that is open for reading, all its segments in order. Once open, many goroutines may use it.
type Recording struct {
	Header                // of the first segment
	Begin, End event.Time // of the entries; a recording that was closed ends then
	Entries    uint64
	Segments   int
	Missing    int        // segments between the first and the last that are not there
	Lost       event.Lost // events that the recorder dropped
	Why        string     // how it ended: "closed" or what failed; "" if it does not say, for example since it is still written
	Bytes      int64      // of all segments
	Sources    []Source   // the engines that a recording of several is about, by their numbers

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
	frames int64 // where they begin
	index  []point
	begin  event.Time // of its entries
	end    event.Time // of its entries, or when it was closed
	bytes  int64      // of the segments before it
}

// point stands for the frames from off up to the next point.
type point struct {
	off  int64
	span // of the requests that are queued in them
}

// Open opens the recording that begins with the file at path, or the single segment that it is.
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

// openMore opens the segments beside the first one that belong to it.
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

// errForeign says that a segment belongs to another recording.
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

// NewRecording reads a single segment of the given size.
func NewRecording(file io.ReaderAt, size int64) (*Recording, error) {
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

func newRecording() (*Recording, error) {
	dec, err := newDecoder()
	return &Recording{dec: dec}, err
}

// addSegment adds a file as the next segment and scans the headers of its frames.
func (r *Recording) addSegment(file io.ReaderAt, size int64, closer func() error) error {
	h, n, err := readHeader(file)
	if err != nil {
		return err
	}
	if len(r.segments) > 0 {
		last := r.segments[len(r.segments)-1]
		if h.Recording != r.Recording || h.Segment <= last.Segment || h.Several != r.Several {
			return errForeign
		}
		r.Missing += h.Segment - last.Segment - 1
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
	r.Why = ""
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
				r.take(&n)
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

// take takes in what a note says; its counts are cumulative.
func (r *Recording) take(n *Note) {
	for k, c := range n.lost() {
		r.Lost[k] = max(r.Lost[k], c)
	}
	switch n.Type {
	case NoteEnd:
		r.Why = n.Why
	case NoteSources:
		r.Sources = learn(r.Sources, n)
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
		p.reach(f.low)
		p.reach(f.high)
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

// Damage is what could not be read as far as frames tell of themselves; a Cursor finds what their bodies hide.
func (r *Recording) Damage() Damage { return r.damage }
