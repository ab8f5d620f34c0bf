package remote

import (
	"bytes"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/sse"
)

// messages yields the JSON values of an answer, each with the time at which its last byte was read. failed reports that
// the server marked the value as an error. A value is valid until the next call. The answer ends with io.EOF.
type messages interface {
	next() (value []byte, failed bool, at event.Time, err error)
}

// events reads server-sent events.
type events struct {
	lines *lines
	event sse.Event
}

func newEvents(l *lines) *events { return &events{lines: l, event: sse.Event{Max: maxLine}} }

func (s *events) next() ([]byte, bool, event.Time, error) {
	e := &s.event
	e.Begin()
	for {
		line, at, err := s.lines.next()
		if err == io.EOF && e.Some { // the last event needs no blank line after it
			return e.Data, e.Failed, at, nil
		}
		if err != nil {
			return nil, false, at, err
		}
		ended := e.Line(line)
		if e.Over {
			return nil, false, at, errLongLine
		}
		if ended {
			return e.Data, e.Failed, at, nil
		}
	}
}

// objects reads NDJSON: one value from each non-empty line.
type objects struct{ lines *lines }

func (o objects) next() ([]byte, bool, event.Time, error) {
	for {
		line, at, err := o.lines.next()
		if line = bytes.TrimSpace(line); err != nil || len(line) > 0 {
			return line, false, at, err
		}
	}
}
