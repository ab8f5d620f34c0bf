package wire

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
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
	silent   bool       // the line has no event
	event    event.Event
	session  Session
	model    *modelLine // of a hello

	// Of a line of columns.
	blank    event.Event   // an event of which nothing is known
	events   []event.Event // so far
	n        int           // number of events; 0 for other lines
	common   []*column     // with one value for all events
	commonAt []int         // where these values begin
	last     int64         // previous number of a column of differences

	passes []struct { // by number % keptPasses
		number uint64
		split  event.Split
	}
	room  []byte   // for a text
	picks []uint16 // room for those of a token
}

// Decode passes the events of a line to emit, in order. They do not refer to line. It returns the content of a line
// about the connection; the zero Session for all others. Lines of unknown types are ignored. Errors: ErrMalformed,
// ErrVersion.
func (d *Decoder) Decode(line []byte, emit func(event.Event)) (Session, error) {
	d.hasTime, d.silent, d.n, d.model = false, false, 0, nil
	d.event, d.session = event.Event{Layer: -1}, Session{}
	if len(bytes.Trim(line, " \t\r\n")) == 0 {
		return Session{}, nil
	}
	if err := d.decode(line, MaxLine, d.readLine); err != nil {
		return Session{}, err
	}
	if d.session.Type == Hello {
		if err := d.session.check(); err != nil {
			return Session{}, err
		}
	}
	switch {
	case d.n > 0:
		for i := range d.events[:d.n] {
			emit(d.events[i])
		}
		clear(d.events)
	case !d.silent:
		emit(d.event)
		if d.model != nil {
			emit(event.Event{Kind: event.KindModel, Layer: -1, At: d.event.At, Dur: d.model.LoadTime, Data: &d.model.Model})
		}
	}
	return d.session, nil
}

// decode reads a line whose members read reads.
func (d *Decoder) decode(line []byte, most int, read func()) error {
	if len(line) > most {
		return fmt.Errorf("%w: %d bytes long", ErrMalformed, len(line))
	}
	s := &d.scan
	s.reset(line)
	if d.begin() {
		read()
	}
	if s.problem == "" && s.at < len(line) && s.peek() != 0 {
		s.fail("more than one value")
	}
	return s.err()
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

// readLine decodes the members of the line.
func (d *Decoder) readLine() {
	for i := range event.NumKinds { // lines of one type mostly follow each other
		kind := (d.recent + i) % event.NumKinds
		if t := &lineTypes[kind]; t.name == string(d.lineType) {
			d.recent, d.event.Kind = kind, kind
			d.require(t.read(d))
			return
		}
	}
	readSession(d)
}

// require marks the line as malformed if it has no time, or if something else is missing.
func (d *Decoder) require(missing string) {
	if !d.hasTime {
		missing = "time"
	}
	if missing != "" {
		d.scan.fail("no " + missing)
	}
}

// string reads a string.
func (d *Decoder) string() string { return valid(d.scan.str()) }

// valid returns b as valid UTF-8, truncated to MaxString.
func valid(b []byte) string { return strings.ToValidUTF8(string(cut(b)), "\ufffd") }

// plausible marks the line as malformed unless ok: it has a number that cannot have been measured.
func (d *Decoder) plausible(ok bool) bool {
	if !ok {
		d.scan.fail("implausible number")
	}
	return ok
}

// time reads a time; false if absent.
func (d *Decoder) time() (event.Time, bool) {
	v, ok := d.scan.signed()
	return event.Time(v), d.plausible(event.Time(v).Plausible()) && ok
}

// count reads a number; 0 if it is absent or negative.
func (d *Decoder) count() int64 {
	v, _ := d.unsigned()
	return int64(min(v, math.MaxInt64))
}

// unsigned reads a count; false if absent.
func (d *Decoder) unsigned() (uint64, bool) {
	v, ok := d.scan.unsigned()
	return v, d.plausible(event.PlausibleCount(v)) && ok
}

// float reads a number; false if absent.
func (d *Decoder) float() (float64, bool) {
	v, ok := d.scan.float()
	return v, ok && d.plausible(event.Plausible(v))
}

// int32 reads a number and clamps it to 0..MaxInt32; 0 if absent.
func (d *Decoder) int32() int32 { return int32(min(d.count(), math.MaxInt32)) }

// text appends a model's text to dst, at most limit bytes. The value is a string, or an array of bytes.
func (d *Decoder) text(dst []byte, limit int) []byte {
	if d.scan.peek() != '[' {
		b := cutAt(d.scan.str(), limit)
		if utf8.Valid(b) {
			return append(dst, b...)
		}
		return append(dst, bytes.ToValidUTF8(b, []byte("\ufffd"))...)
	}
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

// readReading reads a number with its origin, or the reason for its absence.
func (d *Decoder) readReading() (r event.Reading) {
	switch d.scan.peek() {
	case '"':
		return event.Absent(originByName(event.NotReported, event.Undefined, d.scan.quoted()))
	case '[':
		for i := range d.elements() {
			switch i {
			case 0:
				r = d.bareReading(event.Measured)
			case 1:
				if o := originByName(event.Measured, event.Derived, d.scan.str()); r.OK() {
					r.Origin = o
				}
			default:
				d.scan.skip()
			}
		}
		return r
	}
	return d.bareReading(event.Measured)
}

// originByName returns the origin with a name from first to last, or first.
func originByName(first, last event.Origin, name []byte) event.Origin {
	for o := first; o <= last; o++ {
		if o.String() == string(name) {
			return o
		}
	}
	return first
}

// bareReading reads a number without an origin; absent if it is no reading.
func (d *Decoder) bareReading(from event.Origin) event.Reading {
	if v, ok := d.float(); ok && event.PlausibleReading(v) {
		return event.Reading{V: v, Origin: from}
	}
	return event.Reading{}
}

// readNumbers reads an array of readings; nil if one is absent: the list has no place for the reason.
func (d *Decoder) readNumbers() (list []float64) {
	known := true
	for range d.elements() {
		r := d.bareReading(event.Measured)
		if known = known && r.OK(); len(list) < MaxBatch {
			list = append(list, r.V)
		}
	}
	if !known {
		return nil
	}
	return list
}

// readSet calls set with the index of each name of an array. It ignores names that are not in the list.
func (d *Decoder) readSet(names []string, set func(i int)) {
	for range d.elements() {
		if i := slices.Index(names, string(d.scan.str())); i >= 0 {
			set(i)
		}
	}
}
