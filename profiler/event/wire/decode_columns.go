package wire

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// noValue marks a missing number in a column.
const noValue = math.MinInt64

// keptPasses is how many forward passes a token line may lag behind its pass: 32 bytes each, 128 KiB.
const keptPasses = 4096

// pass is the split time of a forward pass.
type pass struct {
	number uint64
	split  event.Split
}

// columns are the values of a tok or step line. Each column is empty, has one value for all events, or one per event.
type columns struct {
	at, dur, index, step, id, n, prompt, sample []int64
	choice                                      []int64
	req                                         []uint64
	logp                                        []float64 // NaN: missing
	split                                       []event.Split
	text, picks, top                            []byteRange // ranges of bytes, experts, candidates
	bytes                                       []byte
	experts                                     []uint16
	candidates                                  []event.TopProb
}

// byteRange is a range of a slice that all events of a line share.
type byteRange struct{ from, to int }

func (c *columns) reset() {
	*c = columns{
		at: c.at[:0], dur: c.dur[:0], index: c.index[:0], step: c.step[:0], id: c.id[:0], n: c.n[:0], prompt: c.prompt[:0],
		sample: c.sample[:0], choice: c.choice[:0], req: c.req[:0], logp: c.logp[:0], split: c.split[:0], text: c.text[:0], picks: c.picks[:0], top: c.top[:0],
		bytes: c.bytes[:0], experts: c.experts[:0], candidates: c.candidates[:0],
	}
}

// fit reports whether every column has no value, one, or n.
func (c *columns) fit(n int) bool {
	for _, length := range [...]int{
		len(c.dur), len(c.index), len(c.step), len(c.id), len(c.n), len(c.prompt), len(c.sample), len(c.choice), len(c.req), len(c.logp),
		len(c.split), len(c.text), len(c.picks), len(c.top),
	} {
		if length > 1 && length != n {
			return false
		}
	}
	return true
}

// valueAt returns the value of event i.
func valueAt[T any](column []T, i int, missing T) T {
	switch len(column) {
	case 0:
		return missing
	case 1:
		return column[0]
	}
	return column[i]
}

// readColumns decodes a tok or step line.
func (d *Decoder) readColumns(kind event.Kind) bool {
	s, c := &d.scan, &d.columns
	c.reset()
	d.event.Kind = kind
	for s.more('}') {
		name := s.key()
		known := len(name) == 1 && d.readCommon(name[0])
		switch {
		case known:
		case kind == event.KindToken:
			known = len(name) == 1 && d.readToken(name[0])
		default:
			known = d.readStep(string(name))
		}
		if !known {
			s.skip()
		}
	}
	n := len(c.at)
	d.hasTime = n > 0 && !slices.Contains(c.at, noValue)
	switch {
	case kind == event.KindToken && (len(c.req) == 0 || slices.Contains(c.req, 0)):
		s.fail("no request")
	case kind == event.KindStep && (len(c.dur) == 0 || slices.Contains(c.dur, noValue)):
		s.fail("no duration")
	case !c.fit(n):
		s.fail("arrays of different lengths")
	}
	return d.require(true, "")
}

// readCommon reads a column that tok and step lines share.
func (d *Decoder) readCommon(name byte) bool {
	c := &d.columns
	switch name {
	case 'a':
		c.at = d.differences(c.at, func(v int64) bool { return event.Time(v).Plausible() })
	case 's':
		c.step = d.differences(c.step, plausibleNumber)
	case 'n':
		c.n = d.ints(c.n)
	case 'x':
		c.split = readColumn(d, c.split, numberArray, d.readSplit)
	default:
		return false
	}
	return true
}

func (d *Decoder) readToken(name byte) bool {
	c, s := &d.columns, &d.scan
	switch name {
	case 'r':
		c.req = readColumn(d, c.req, scalarValue, func() uint64 { v, _ := s.unsigned(); return v })
	case 'i':
		c.index = d.differences(c.index, plausibleNumber)
	case 'd':
		c.id = d.ints(c.id)
	case 'c':
		c.choice = d.ints(c.choice)
	case 'w':
		c.sample = d.ints(c.sample)
	case 'l':
		c.logp = readColumn(d, c.logp, scalarValue, func() float64 {
			if v, ok := d.float(); ok {
				return v
			}
			return math.NaN()
		})
	case 'p':
		c.text = readColumn(d, c.text, numberArray, func() byteRange {
			from := len(c.bytes)
			c.bytes = d.text(c.bytes, MaxString)
			return byteRange{from, len(c.bytes)}
		})
	case 'o':
		c.top = readColumn(d, c.top, nestedArray, d.readTop)
	case 'e':
		c.picks = readColumn(d, c.picks, numberArray, d.readPicks)
	default:
		return false
	}
	return true
}

func (d *Decoder) readStep(name string) bool {
	c := &d.columns
	switch name {
	case "dur":
		c.dur = d.ints(c.dur)
	case "m":
		c.prompt = d.ints(c.prompt)
	case "fpm":
		d.event.Data = readPass(d)
	default:
		return false
	}
	return true
}

// Kinds of single values, to distinguish a single value from a column of values.
const (
	scalarValue = iota // not an array
	numberArray        // an array that starts with a number
	nestedArray        // an array that starts with an array of numbers
)

// isSingle reports whether the next value is a single value of the given kind, rather than a column.
func (d *Decoder) isSingle(kind int) bool {
	if d.scan.peek() != '[' {
		return true
	}
	s := d.scan // a copy, to look ahead
	if kind == scalarValue {
		return false
	}
	s.at++
	if kind == nestedArray {
		if s.peek() != '[' {
			return false
		}
		s.at++
	}
	c := s.peek()
	return c == '-' || c >= '0' && c <= '9' || c == 'N' || c == 'I'
}

// readColumn reads a column, or the one value of it.
func readColumn[T any](d *Decoder, column []T, kind int, read func() T) []T {
	s := &d.scan
	column = column[:0]
	if d.isSingle(kind) {
		return append(column, read())
	}
	if s.open('[') {
		for s.more(']') {
			if len(column) == MaxBatch {
				s.fail("too many events")
				break
			}
			column = append(column, read())
		}
	}
	return column
}

// ints reads a column of numbers; negative ones become noValue.
func (d *Decoder) ints(column []int64) []int64 {
	return readColumn(d, column, scalarValue, func() int64 {
		v, ok := d.scan.signed()
		switch {
		case !ok || v < 0:
			return noValue
		case !event.PlausibleCount(v):
			d.implausible()
		}
		return v
	})
}

// plausibleNumber reports whether v is within MaxNumber in both directions.
func plausibleNumber(v int64) bool { return v <= event.MaxNumber && v >= -event.MaxNumber }

// differences reads a column whose later entries are differences from the previous one. Each sum must be plausible.
func (d *Decoder) differences(column []int64, plausible func(v int64) bool) []int64 {
	last := int64(0)
	return readColumn(d, column, scalarValue, func() int64 {
		v, ok := d.scan.signed()
		if !ok {
			return noValue
		}
		if last = event.Add(last, v); !plausible(last) {
			d.implausible()
		}
		return last
	})
}

func (d *Decoder) readSplit() (split event.Split) {
	parts := split.Parts()
	if !d.scan.open('[') {
		return split
	}
	for i := 0; d.scan.more(']'); i++ {
		if v := min(d.count(), math.MaxUint32); i < len(parts) {
			*parts[i] = uint32(v)
		}
	}
	return split
}

func (d *Decoder) readPicks() byteRange {
	c := &d.columns
	from := len(c.experts)
	if d.scan.peek() == '"' {
		var ok bool
		if c.experts, ok = unpackPicks(c.experts, d.scan.str()); !ok {
			d.scan.fail("malformed picks")
		}
		return byteRange{from, len(c.experts)}
	}
	for range d.elements() {
		c.experts = append(c.experts, uint16(min(d.count(), math.MaxUint16)))
	}
	return byteRange{from, len(c.experts)}
}

// readTop reads the alternatives of one token.
func (d *Decoder) readTop() byteRange {
	c := &d.columns
	from := len(c.candidates)
	for range d.elements() {
		if t := d.readCandidate(); len(c.candidates)-from < MaxTop {
			c.candidates = append(c.candidates, t)
		}
	}
	return byteRange{from, len(c.candidates)}
}

func (d *Decoder) readCandidate() event.TopProb {
	t := event.TopProb{ID: -1, LogP: float32(math.Inf(-1))}
	for i := range d.elements() {
		switch i {
		case 0:
			t.ID = d.int32()
		case 1:
			if v, ok := d.float(); ok {
				t.LogP = float32(v)
			}
		case 2:
			t.Text = string(d.text(nil, MaxString))
		default:
			d.scan.skip()
		}
	}
	return t
}
