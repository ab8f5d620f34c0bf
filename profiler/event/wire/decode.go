package wire

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// Decoder decodes the lines of an engine. It keeps the split times of the last keptPasses forward passes, which token
// lines refer to. It is not safe for concurrent use.
type Decoder struct {
	scan     scanner
	lineType []byte     // member "t" of the line
	recent   event.Kind // of the last line with events
	hasTime  bool       // the line has a time
	event    event.Event
	session  Session
	model    *event.Model // of a hello
	loadTime int64        // ns to load model

	// Of a line of columns.
	blank    event.Event   // an event of which nothing is known
	events   []event.Event // so far
	n        int           // number of events
	common   []*column     // with one value for all events
	commonAt []int         // where these values begin
	last     int64         // previous number of a column of differences

	passes []pass   // by number % keptPasses
	room   []byte   // for a text
	picks  []uint16 // room for those of a token
}

// Decode passes the events of a line to emit, in order. They do not refer to line. It returns the content of a line
// about the connection; the zero Session for all others. Lines of unknown types are ignored. Errors: ErrMalformed,
// ErrVersion.
func (d *Decoder) Decode(line []byte, emit func(event.Event)) (Session, error) {
	if len(line) > MaxLine {
		return Session{}, fmt.Errorf("%w: %d bytes long", ErrMalformed, len(line))
	}
	s := &d.scan
	s.reset(line)
	if s.peek() == 0 && s.at == len(line) {
		return Session{}, nil
	}
	d.hasTime, d.model, d.loadTime = false, nil, 0
	d.event, d.session = event.Event{Layer: -1}, Session{}
	if !d.begin() {
		return Session{}, s.err()
	}
	emits := d.readLine()
	if s.problem == "" && s.at < len(line) && s.peek() != 0 {
		s.fail("more than one value")
	}
	if s.problem != "" {
		return Session{}, s.err()
	}
	if d.session.Type == Hello {
		if err := d.session.check(); err != nil {
			return Session{}, err
		}
	}
	if emits {
		d.emitAll(emit)
	}
	return d.session, nil
}

// emitAll emits the events of the line.
func (d *Decoder) emitAll(emit func(event.Event)) {
	switch d.event.Kind {
	case event.KindToken, event.KindStep:
		for i := range d.events[:d.n] {
			emit(d.events[i])
		}
		clear(d.events)
	default:
		emit(d.event)
		if d.model != nil {
			emit(event.Event{Kind: event.KindModel, Layer: -1, At: d.event.At, Dur: d.loadTime, Data: d.model})
		}
	}
}

// begin finds the type of the line. It stops before the first member, or after the type if that comes first.
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
			s.fail("the type is not a string")
			return false
		}
		d.lineType, found = append(d.lineType[:0], s.quoted()...), true
		if at == start.at {
			return s.problem == ""
		}
	}
	if !found {
		s.fail("no type")
	}
	if s.problem != "" {
		return false
	}
	*s = start
	return true
}

// readLine decodes the members of the line and reports whether it has events.
func (d *Decoder) readLine() bool {
	if t := &lineTypes[d.recent]; t.name == string(d.lineType) { // lines of one type mostly follow each other
		return t.read(d)
	}
	for kind := range event.NumKinds {
		if t := &lineTypes[kind]; t.name == string(d.lineType) {
			d.recent = kind
			return t.read(d)
		}
	}
	return readSession(d)
}

// members calls member for each name of the open object. member decodes the value, or returns false for unknown names,
// which are skipped.
func (d *Decoder) members(member func(name []byte) bool) {
	s := &d.scan
	for s.more('}') {
		name := s.key()
		if string(name) == "a" && s.depth == 1 {
			d.event.At, d.hasTime = d.time()
			continue
		}
		if !member(name) {
			s.skip()
		}
	}
}

// require marks the line as malformed unless ok is true and the line has a time. what names the missing member.
func (d *Decoder) require(ok bool, what string) bool {
	if !ok || !d.hasTime {
		if !d.hasTime {
			what = "time"
		}
		d.scan.fail("no " + what)
	}
	return d.scan.problem == ""
}

// string reads a string.
func (d *Decoder) string() string { return valid(d.scan.str()) }

// valid returns b as valid UTF-8, truncated to MaxString.
func valid(b []byte) string { return strings.ToValidUTF8(string(cut(b)), "\ufffd") }

// implausible marks the line as malformed: it has a number that cannot have been measured.
func (d *Decoder) implausible() { d.scan.fail("implausible number") }

// time reads a time; false if absent.
func (d *Decoder) time() (event.Time, bool) {
	v, ok := d.scan.signed()
	if !event.Time(v).Plausible() {
		d.implausible()
		return 0, false
	}
	return event.Time(v), ok
}

// wall reads a wall-clock time in Unix ns; 0 if absent.
func (d *Decoder) wall() int64 {
	v, _ := d.time()
	return max(int64(v), 0)
}

// count reads a number and clamps negative ones to 0; 0 if absent.
func (d *Decoder) count() int64 {
	v, _ := d.scan.signed()
	if v = max(v, 0); !event.PlausibleCount(v) {
		d.implausible()
		return 0
	}
	return v
}

// unsigned reads a count; false if absent.
func (d *Decoder) unsigned() (uint64, bool) {
	v, ok := d.scan.unsigned()
	if !event.PlausibleCount(v) {
		d.implausible()
		return 0, false
	}
	return v, ok
}

// float reads a number; false if absent.
func (d *Decoder) float() (float64, bool) {
	v, ok := d.scan.float()
	if ok && !event.Plausible(v) {
		d.implausible()
		return 0, false
	}
	return v, ok
}

// int32 reads a number and clamps it to 0..MaxInt32; 0 if absent.
func (d *Decoder) int32() int32 { return int32(min(d.count(), math.MaxInt32)) }

// text appends a model's text to dst, at most limit bytes. The value is a string, or an array of bytes.
func (d *Decoder) text(dst []byte, limit int) []byte {
	s := &d.scan
	if s.peek() != '[' {
		b := cutAt(s.str(), limit)
		if utf8.Valid(b) {
			return append(dst, b...)
		}
		return append(dst, bytes.ToValidUTF8(b, []byte("\ufffd"))...)
	}
	return d.raw(dst, limit)
}

// raw appends an array of bytes to dst, at most limit of them.
func (d *Decoder) raw(dst []byte, limit int) []byte {
	from := len(dst)
	for range d.elements() {
		if v, ok := d.scan.signed(); ok && v >= 0 && v < 256 && len(dst)-from < limit {
			dst = append(dst, byte(v))
		}
	}
	return dst
}

// identifier reads the number of a request or a call; 0 if absent.
func (d *Decoder) identifier() uint64 {
	v, _ := d.scan.unsigned()
	return v
}

// positive reads a number and clamps negative ones to 0; 0 if absent.
func (d *Decoder) positive() float64 { return max(d.bareReading(event.Reported).V, 0) }

// elements iterates over an array; the body must read each element. Values of other types have none.
func (d *Decoder) elements() iter.Seq[int] {
	return func(yield func(int) bool) {
		if d.scan.open('[') {
			for i := 0; d.scan.more(']') && yield(i); i++ {
			}
		}
	}
}

// names iterates over the names of an object; the body must read each value. Values of other types have none.
func (d *Decoder) names() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if d.scan.open('{') {
			for d.scan.more('}') && yield(d.scan.key()) {
			}
		}
	}
}

// counts reads an array of cumulative counts; nil if absent.
func (d *Decoder) counts() (list []uint64) {
	for range d.elements() {
		v, ok := d.unsigned()
		if !ok {
			d.scan.fail("expected a count")
		}
		list = append(list, v)
	}
	return list
}

// integers reads an array of integers; nil if absent.
func (d *Decoder) integers() (list []int64) {
	for range d.elements() {
		v, ok := d.scan.signed()
		if !ok {
			d.scan.fail("expected a number")
		}
		list = append(list, v)
	}
	return list
}

// words reads an array of at most MaxCount strings.
func (d *Decoder) words() (list []string) {
	for range d.elements() {
		if w := d.string(); len(list) < MaxCount {
			list = append(list, w)
		}
	}
	return list
}
