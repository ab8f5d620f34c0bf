package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// Decoder reads the lines of an engine. What it remembers is where the time of recent forward passes went, for tokens that leave
// that to their pass; it is bounded. It is not safe for use by several goroutines.
type Decoder struct {
	scan    scanner
	kind    []byte // type of the line
	timed   bool   // the line has a time
	event   event.Event
	session Session
	model   *event.Model // of a hello
	took    int64        // to load it, ns
	columns columns
	passes  []pass // by number modulo remembered
}

// Decode hands the events of a line to emit, in order. They do not refer to line. For a line about the connection it returns what
// that says; for all others the zero Session. Lines of unknown types are neither. Errors: ErrMalformed, ErrVersion.
func (d *Decoder) Decode(line []byte, emit func(event.Event)) (Session, error) {
	if len(line) > MaxLine {
		return Session{}, fmt.Errorf("%w: %d bytes long", ErrMalformed, len(line))
	}
	s := &d.scan
	s.reset(line)
	if s.peek() == 0 && s.at == len(line) {
		return Session{}, nil
	}
	d.timed, d.model, d.took = false, nil, 0
	d.event, d.session = event.Event{Layer: -1}, Session{}
	if !d.begin() {
		return Session{}, s.err()
	}
	emits := d.read()
	if s.why == "" && s.at < len(line) && s.peek() != 0 {
		s.fail("more than one value")
	}
	if s.why != "" {
		return Session{}, s.err()
	}
	if d.session.Type == Hello {
		if err := d.session.check(); err != nil {
			return Session{}, err
		}
	}
	if emits {
		d.hand(emit)
	}
	return d.session, nil
}

// hand emits what the line told.
func (d *Decoder) hand(emit func(event.Event)) {
	switch d.event.Kind {
	case event.KindToken:
		d.tokens(emit)
	case event.KindStep:
		d.steps(emit)
	default:
		emit(d.event)
		if d.model != nil {
			emit(event.Event{Kind: event.KindModel, Layer: -1, At: d.event.At, Dur: d.took, Data: d.model})
		}
	}
}

// begin finds the type of the line, and stops before its first member, or the first one after a type that comes first.
func (d *Decoder) begin() bool {
	s := &d.scan
	if s.peek() != '{' {
		s.fail("expected an object")
		return false
	}
	s.open('{')
	start, found := *s, false
	for s.more('}') {
		at := s.at
		if string(s.key()) != "t" {
			s.skip()
			continue
		}
		if s.peek() != '"' {
			s.fail("the type is no string")
			return false
		}
		d.kind, found = append(d.kind[:0], s.quoted()...), true
		if at == start.at {
			return s.why == ""
		}
	}
	if !found {
		s.fail("no type")
	}
	if s.why != "" {
		return false
	}
	*s = start
	return true
}

// read reads the rest of the line. It reports whether that makes an event.
func (d *Decoder) read() bool {
	switch string(d.kind) {
	case "tok":
		return d.readColumns(event.KindToken)
	case "step":
		return d.readColumns(event.KindStep)
	case "stage":
		return d.readStage()
	case "req":
		return d.readRequest()
	case "experts":
		return d.readExperts()
	case "kv":
		return d.readKV()
	case "log":
		return d.readLog()
	case "count":
		return d.readCounters()
	case "report":
		return d.readReport()
	case "ops":
		return d.readOps()
	case "host":
		return d.readHost()
	case "model":
		return d.readModel()
	case "engine":
		return d.readEngine()
	}
	return d.readSession()
}

// members calls member for each name of the object that has been opened, which reads its value, or says false if it does not know it.
func (d *Decoder) members(member func(name []byte) bool) {
	s := &d.scan
	for s.more('}') {
		name := s.key()
		if string(name) == "a" && s.depth == 1 {
			v, ok := s.signed()
			d.event.At, d.timed = event.Time(v), ok
			continue
		}
		if !member(name) {
			s.skip()
		}
	}
}

// need fails the line if what it requires is not there.
func (d *Decoder) need(there bool, what string) bool {
	if !there || !d.timed {
		if !d.timed {
			what = "time"
		}
		d.scan.fail("no " + what)
	}
	return d.scan.why == ""
}

// string reads a string.
func (d *Decoder) string() string { return clean(d.scan.str()) }

// clean is a string without what is no UTF-8 or over the limit.
func clean(b []byte) string { return strings.ToValidUTF8(string(cut(b)), "\ufffd") }

// count reads a number that is not negative; 0 if there is none.
func (d *Decoder) count() int64 {
	v, _ := d.scan.signed()
	return max(v, 0)
}

// int32 reads a number that is not negative and fits; 0 if there is none.
func (d *Decoder) int32() int32 { return int32(min(d.count(), math.MaxInt32)) }

// text reads a model's text of so many bytes at most: a string, or an array of bytes.
func (d *Decoder) text(dst []byte, most int) []byte {
	s := &d.scan
	if s.peek() != '[' {
		b := cutAt(s.str(), most)
		if utf8.Valid(b) {
			return append(dst, b...)
		}
		return append(dst, bytes.ToValidUTF8(b, []byte("\ufffd"))...)
	}
	return d.raw(dst, most)
}

// raw reads an array of bytes, so many at most.
func (d *Decoder) raw(dst []byte, most int) []byte {
	s := &d.scan
	from := len(dst)
	if s.open('[') {
		for s.more(']') {
			if v, ok := s.signed(); ok && v >= 0 && v < 256 && len(dst)-from < most {
				dst = append(dst, byte(v))
			}
		}
	}
	return dst
}
