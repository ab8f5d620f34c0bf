package api

import (
	"bytes"
	"io"

	"github.com/llmtop/llmtop/profiler/event"
)

// messages hands out what an answer consists of, one JSON value after the other, each with the moment at which the last byte of what carried it
// was read. failed says that the server calls it an error. The value is valid until the next call. io.EOF ends an answer.
type messages interface {
	next() (value []byte, failed bool, at event.Time, err error)
}

// events reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). Comments and fields other than data are
// passed over, except "event: error" and the field "error" by which llama.cpp tells that a request has failed.
type events struct {
	lines *lines
	data  []byte
	began bool // there was a line
}

func (s *events) next() ([]byte, bool, event.Time, error) {
	s.data = s.data[:0]
	some, failed := false, false
	for {
		line, at, err := s.lines.next()
		if err == io.EOF && some { // the last event need not be ended
			return s.data, failed, at, nil
		}
		if err != nil {
			return nil, false, at, err
		}
		if !s.began {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			s.began = true
		}
		if len(line) == 0 {
			if some {
				return s.data, failed, at, nil
			}
			failed = false // an event without data is none
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			failed = string(value) == "error"
		case "error":
			failed = true
			fallthrough
		case "data":
			if some {
				s.data = append(s.data, '\n')
			}
			if some = true; len(s.data)+len(value) > maxLine {
				return nil, false, at, errLongLine
			}
			s.data = append(s.data, value...)
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
