package recording

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// requestKey identifies a request.
type requestKey struct {
	engine int
	id     event.RequestID
}

// requestIndex has the time at which each request of a recording was queued. It is made when it is first asked, since
// that takes all lines: about a second for each 500 MB of them.
type requestIndex struct {
	once   sync.Once
	queued map[requestKey]event.Time
	err    error
}

// queuedWord is in each line of a queued request.
var queuedWord = []byte(`"queued"`)

// FindRequest returns the time at which a request of an engine was queued. It returns an error if the recording does
// not have it.
func (r *Recording) FindRequest(engine int, id event.RequestID) (event.Time, error) {
	r.requests.once.Do(func() { r.requests.queued, r.requests.err = r.indexRequests() })
	if r.requests.err != nil {
		return 0, fmt.Errorf("find request %d: %w", id, r.requests.err)
	}
	at, ok := r.requests.queued[requestKey{engine, id}]
	if !ok {
		return 0, fmt.Errorf("find request %d: it is not in the recording", id)
	}
	return at, nil
}

func (r *Recording) indexRequests() (map[requestKey]event.Time, error) {
	queued := make(map[requestKey]event.Time)
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
		_, _ = decoder.Decode(e.Line, func(q event.Event) { // a player counts lines that cannot be decoded
			key := requestKey{e.Engine, q.Req}
			if _, seen := queued[key]; !seen && q.Kind == event.KindRequest && q.State == event.StateQueued {
				queued[key] = max(e.At, r.segments[c.segment].begin)
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
