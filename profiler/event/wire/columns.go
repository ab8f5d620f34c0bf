package wire

import (
	"bytes"
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// column is a member of the lines that have one event or several: a value that all events have, or an array with one
// for each. Each row is both written and read, so a field of a token or a forward pass is one row.
type column struct {
	name  string
	shape int                                              // of a value
	delta func(e *event.Event) int64                       // nil unless entries of an array are differences to the previous one: the number
	put   func(b batch, dst []byte, e *event.Event) []byte // appends the value, or nothing if it is unknown
	read  func(d *Decoder, e *event.Event)                 // reads the value; null and other types leave it unknown
}

// The shapes of values, to distinguish a value from an array of values.
const (
	scalarValue = iota // not an array
	numberArray        // may be an array that starts with a number
	nestedArray        // an array that starts with an array of numbers
)

// batch is the state of writing a line.
type batch struct {
	steps []event.Event // forward passes that the reader has received
	last  int64         // previous number of a column of differences
}

// numbers is a column of numbers from 0; get returns a negative one if it is unknown.
func numbers(name string, get func(*event.Event) int64, set func(*event.Event, int64)) column {
	return column{name, scalarValue, nil, func(b batch, dst []byte, e *event.Event) []byte {
		if v := get(e); v >= 0 {
			return strconv.AppendInt(dst, min(v, event.MaxNumber)-b.last, 10)
		}
		return dst
	}, readNumber(set)}
}

func readNumber(set func(*event.Event, int64)) func(*Decoder, *event.Event) {
	return func(d *Decoder, e *event.Event) {
		if v, ok := d.scan.signed(); ok && v >= 0 && d.plausible(event.PlausibleCount(v)) {
			set(e, v)
		}
	}
}

// deltas is a column of numbers from 0 whose array has differences.
func deltas(name string, get func(*event.Event) int64, set func(*event.Event, int64)) column {
	c := numbers(name, get, set)
	c.delta = get
	c.read = func(d *Decoder, e *event.Event) {
		if v, ok := d.difference(); ok && d.plausible(event.Plausible(float64(v))) && v >= 0 {
			set(e, v)
		}
	}
	return c
}

// difference reads a number of an array of differences: the sum so far; false if absent.
func (d *Decoder) difference() (int64, bool) {
	v, ok := d.scan.signed()
	if ok {
		d.last = event.Add(d.last, v)
	}
	return d.last, ok
}

// timeColumn is the first column of each line: its entries are the events of the line.
var timeColumn = column{"a", scalarValue, func(e *event.Event) int64 { return int64(bounded(e.At)) }, putTime, readTime}

func putTime(b batch, dst []byte, e *event.Event) []byte {
	return strconv.AppendInt(dst, int64(bounded(e.At))-b.last, 10)
}

func readTime(d *Decoder, e *event.Event) {
	if v, ok := d.difference(); ok {
		e.At = event.Time(v)
		d.plausible(e.At.Plausible())
	}
}

// noTime marks an event without a time.
const noTime = event.Time(math.MinInt64)

// appendColumns appends events as one line without its end.
func appendColumns(dst []byte, name string, columns []column, events, steps []event.Event) ([]byte, error) {
	from := len(dst)
	out := append(append(append(dst, `{"t":"`...), name...), '"')
	for i := range columns {
		out = columns[i].append(out, batch{steps: steps}, events)
	}
	if out = append(out, '}'); len(out)-from > MaxLine {
		return dst, ErrEvent
	}
	return out, nil
}

// one appends the members of a single event after its time.
func one(dst []byte, columns []column, e *event.Event) []byte {
	for i := range columns[1:] {
		dst = columns[i+1].member(dst, batch{}, e)
	}
	return dst
}

// member appends the value of one event, or nothing if it is unknown.
func (c *column) member(dst []byte, b batch, e *event.Event) []byte {
	out := key(dst, c.name)
	n := len(out)
	if out = c.put(b, out, e); len(out) == n {
		return out[:len(dst)]
	}
	return out
}

// append appends the values of all events, as a single one if they are equal.
func (c *column) append(dst []byte, b batch, events []event.Event) []byte {
	if len(events) == 1 {
		return c.member(dst, b, &events[0])
	}
	out, unknown := append(key(dst, c.name), '['), 0
	for n := len(out); unknown < len(events); unknown++ { // mostly all of them, or none
		if out = c.put(b, out[:n], &events[unknown]); len(out) > n {
			out = out[:n]
			break
		}
	}
	if unknown == len(events) {
		return out[:len(dst)]
	}
	for range unknown {
		out = append(out, "null,"...)
	}
	begin, first, same := len(out), 0, unknown == 0 && c.delta == nil && c.shape == scalarValue
	for i := range events[unknown:] {
		out = appendComma(out, i)
		at, e := len(out), &events[unknown+i]
		if out = c.put(b, out, e); len(out) == at {
			out = append(out, "null"...)
		} else if c.delta != nil {
			b.last = c.delta(e)
		}
		if i == 0 {
			first = len(out)
		} else if same {
			same = bytes.Equal(out[begin:first], out[at:])
		}
	}
	if same {
		return out[:begin-1+copy(out[begin-1:], out[begin:first])]
	}
	return append(out, ']')
}

// readColumns decodes a line of columns; blank is an event of which nothing is known.
func (d *Decoder) readColumns(columns []column, blank event.Event) {
	s, next, longest := &d.scan, 0, 0
	blank.Layer, blank.At = -1, noTime
	d.blank, d.events, d.common, d.commonAt = blank, d.events[:0], d.common[:0], d.commonAt[:0]
	for s.more('}') {
		name := s.key()
		i := index(len(columns), next, func(i int) bool { return columns[i].name == string(name) })
		if i < 0 {
			s.skip()
			continue
		}
		next = i + 1
		n := d.readColumn(&columns[i])
		if i == 0 {
			d.n = n
		} else if n > 1 && longest != 0 && n != longest {
			s.fail("arrays of different lengths")
		} else if n > 1 {
			longest = n
		}
	}
	if longest > 0 && longest != d.n {
		s.fail("arrays of different lengths")
	}
	if s.problem != "" {
		d.n = 0
		return
	}
	d.repeat()
	d.hasTime = d.n > 0
	for i := range d.events[:d.n] {
		d.hasTime = d.hasTime && d.events[i].At != noTime
	}
}

// at returns event i of the line, blank at first.
func (d *Decoder) at(i int) *event.Event {
	for len(d.events) <= i {
		d.events = append(d.events, d.blank)
	}
	return &d.events[i]
}

// readColumn reads a column into the events of the line and returns the number of its entries.
func (d *Decoder) readColumn(c *column) (n int) {
	s := &d.scan
	d.last = 0
	if d.isSingle(c.shape) {
		d.common, d.commonAt = append(d.common, c), append(d.commonAt, s.at)
		c.read(d, d.at(0))
		return 1
	}
	from := 0
	if s.open('[') {
		for ; s.more(']'); n++ {
			if n == MaxBatch {
				s.fail("too many events")
				break
			}
			if n == 0 {
				from = s.at
			}
			c.read(d, d.at(n))
		}
	}
	if n == 1 {
		d.common, d.commonAt = append(d.common, c), append(d.commonAt, from)
	}
	return n
}

// repeat reads the single values of the line for its other events.
func (d *Decoder) repeat() {
	end := d.scan
	for i := 1; i < d.n; i++ {
		e := d.at(i)
		for k, c := range d.common {
			d.last, d.scan.at = 0, d.commonAt[k]
			c.read(d, e)
		}
	}
	d.scan = end
}

// isSingle reports whether the next value is one value of the given shape, rather than an array of them.
func (d *Decoder) isSingle(shape int) bool {
	s := d.scan // a copy, to look ahead
	if s.peek() != '[' {
		return true
	}
	for ; shape > 0 && s.peek() == '['; shape-- {
		s.at++
	}
	c := s.peek()
	return shape == 0 && (c == '-' || c >= '0' && c <= '9' || c == 'N' || c == 'I')
}
