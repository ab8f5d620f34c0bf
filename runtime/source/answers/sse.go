package answers

import "bytes"

// Event is the server-sent event being read from lines
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). Comments and fields other than data are skipped, except "event: error" and the field
// "error", with which llama.cpp reports a failed request. Set Max before the first line.
type Event struct {
	Max    int    // limit of Data in bytes
	Data   []byte // content of the data lines, valid until Begin
	Some   bool   // the event has data
	Failed bool   // the server marked the event as an error
	Over   bool   // Data exceeds Max, or, if set by the reader, a line was too long

	began bool // a line has been read
}

// Begin resets e for the next event.
func (e *Event) Begin() { e.Data, e.Some, e.Failed, e.Over = e.Data[:0], false, false, false }

// Line adds the next line, without its line end, and reports whether it ends an event. An event without data is
// ignored.
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
