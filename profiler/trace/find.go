package trace

import (
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// Find is the time at which a request of a source was queued, as far as the recording holds it.
func (r *Recording) Find(codec Codec, source int, id event.RequestID) (event.Time, error) {
	for _, s := range r.segments {
		for i, p := range s.index {
			if !p.holds(id) {
				continue
			}
			end := s.size
			if i+1 < len(s.index) {
				end = s.index[i+1].off
			}
			at, ok, err := r.findIn(s, codec, source, id, p.off, end)
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

// findIn looks into the frames of a part of a segment.
func (r *Recording) findIn(s *segment, codec Codec, source int, id event.RequestID, from, to int64) (at event.Time, ok bool, err error) {
	sc := r.scanner(s)
	for sc.off = from; sc.off < to && !ok; {
		f, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, false, err
		}
		if !f.holds(id) || f.kind == frameNote {
			continue
		}
		body, err := sc.read(&f)
		if err != nil {
			return 0, false, err
		}
		for e := (entries{body, f.first, f.entries, r.Several}); !ok; {
			when, of, line, more := e.next()
			if !more {
				break
			}
			if of != source {
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

// segmentFor is the segment from which on a state at a time is rebuilt: the earliest one from which no segment is missing and no more
// than so many bytes are to be read.
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
