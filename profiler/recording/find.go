package recording

import (
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// FindRequest returns the time at which a request of an engine was queued. It returns an error if the recording does
// not have it.
func (r *Recording) FindRequest(codec Codec, engine int, id event.RequestID) (event.Time, error) {
	for _, s := range r.segments {
		for i, p := range s.index {
			if !p.contains(id) {
				continue
			}
			end := s.size
			if i+1 < len(s.index) {
				end = s.index[i+1].off
			}
			at, ok, err := r.findIn(s, codec, engine, id, p.off, end)
			if err != nil {
				return 0, fmt.Errorf("find request %d: %w", id, err)
			}
			if ok {
				return max(at, s.begin), nil
			}
		}
	}
	return 0, fmt.Errorf("find request %d: it is not in the recording", id)
}

// findIn searches the frames of a part of a segment.
func (r *Recording) findIn(s *segment, codec Codec, engine int, id event.RequestID, from, to int64) (at event.Time, ok bool, err error) {
	sc := r.scanner(s)
	for sc.off = from; sc.off < to && !ok; {
		f, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, false, err
		}
		if !f.contains(id) || f.kind == frameNote {
			continue
		}
		body, err := sc.read(&f)
		if err != nil {
			return 0, false, err
		}
		for e := (entries{body, f.first, f.entries, r.MultiEngine}); !ok; {
			when, number, line, more := e.next()
			if !more {
				break
			}
			if number != engine {
				continue
			}
			_ = codec.Decode(line, func(e event.Event) {
				ok = ok || e.Kind == event.KindRequest && e.State == event.StateQueued && e.Req == id
			})
			at = when
		}
	}
	return at, ok, nil
}

// segmentFor returns the segment from which to rebuild the state at a time: the earliest one with no missing segment
// after it and at most most bytes to read.
func (r *Recording) segmentFor(at event.Time, most int64) int {
	i := 0
	for i+1 < len(r.segments) && r.segments[i+1].begin <= at {
		i++
	}
	end := r.segments[i].bytes + r.segments[i].size
	for i > 0 && r.segments[i-1].Segment+1 == r.segments[i].Segment && end-r.segments[i-1].bytes <= most {
		i--
	}
	return i
}
