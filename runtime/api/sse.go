package api

import (
	"bytes"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/sse"
)

// messages hands out what an answer consists of, one JSON value after the other, each with the moment at which the last byte of what carried it
// was read. failed says that the server calls it an error. The value is valid until the next call. io.EOF ends an answer.
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
		if err == io.EOF && e.Some { // the last event need not be ended
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

// objects reads NDJSON: a value on every line that is not empty.
type objects struct{ lines *lines }

func (o objects) next() ([]byte, bool, event.Time, error) {
	for {
		line, at, err := o.lines.next()
		if line = bytes.TrimSpace(line); err != nil || len(line) > 0 {
			return line, false, at, err
		}
	}
}
