package recording

import (
	"bytes"
	"fmt"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// queuedWord is in each line of a queued request.
var queuedWord = []byte(`"queued"`)

// FindRequest returns the time at which a request of an engine was queued. It returns an error if the recording does
// not have it. The first call reads all lines: about 0.25 s for each 100 MB of them.
func (r *Recording) FindRequest(engine int, id event.RequestID) (event.Time, error) {
	queued, err := r.queued()
	if err != nil {
		return 0, fmt.Errorf("find request %d: %w", id, err)
	}
	at, ok := queued[engine][id]
	if !ok {
		return 0, fmt.Errorf("find request %d: it is not in the recording", id)
	}
	return at, nil
}

// indexRequests returns the time at which each request of each engine was queued.
func (r *Recording) indexRequests() (map[int]map[event.RequestID]event.Time, error) {
	queued := make(map[int]map[event.RequestID]event.Time)
	var decoder wire.Decoder
	c := r.Cursor(0)
	for {
		e, err := c.Next()
		if err == io.EOF {
			return queued, nil
		}
		if err != nil {
			return nil, err
		}
		if e.Note != nil || !bytes.Contains(e.Line, queuedWord) {
			continue
		}
		of := queued[e.Engine]
		if of == nil {
			of = make(map[event.RequestID]event.Time)
			queued[e.Engine] = of
		}
		_, _ = decoder.Decode(e.Line, func(q event.Event) { // a player counts lines that cannot be decoded
			if _, seen := of[q.Req]; !seen && q.Kind == event.KindRequest && q.State == event.StateQueued {
				of[q.Req] = max(e.At, r.segments[c.segment].begin)
			}
		})
	}
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
