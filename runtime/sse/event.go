// Package sse puts server-sent events together from lines (https://html.spec.whatwg.org/multipage/server-sent-events.html).
package sse

import "bytes"

// Event is one that holds data, while it is read. Comments and fields other than data are passed over, except "event: error" and the field
// "error" by which llama.cpp tells that a request has failed. Set Max before the first line.
type Event struct {
	Max    int    // bytes of data
	Data   []byte // its lines of data, valid until Begin
	Some   bool   // there is data
	Failed bool   // the server calls it an error
	Over   bool   // there is more data than Max, or, if its reader says so, a line too long to be read

	began bool // there was a line
}

// Begin forgets the event before.
func (e *Event) Begin() { e.Data, e.Some, e.Failed, e.Over = e.Data[:0], false, false, false }

// Line takes the next line without its end, and reports whether it ends an event. One without data is none.
func (e *Event) Line(line []byte) (ended bool) {
	if !e.began {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		e.began = true
	}
	if len(line) == 0 {
		if e.Some || e.Over {
			return true
		}
		e.Failed = false
		return false
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		e.Failed = string(value) == "error"
	case "error":
		e.Failed = true
		fallthrough
	case "data":
		if e.Some {
			e.Data = append(e.Data, '\n')
		}
		e.Some = true
		if e.Over = e.Over || len(e.Data)+len(value) > e.Max; !e.Over {
			e.Data = append(e.Data, value...)
		}
	}
	return false
}
