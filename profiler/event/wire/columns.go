package wire

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// absent stands for a number that is not told in a column.
const absent = math.MinInt64

// remembered is how many forward passes a token may come after its own, each 32 bytes.
const remembered = 4096

// pass is where the time of a forward pass went.
type pass struct {
	number uint64
	split  event.Split
}

// columns are the values of a tok or step line: none, one for all events, or one for each.
type columns struct {
	at, dur, index, step, id, n, prompt, sample []int64
	req                                         []uint64
	logp                                        []float64 // NaN: not told
	split                                       []event.Split
	text, picks, top                            []span // of the following
	bytes                                       []byte
	experts                                     []uint16
	candidates                                  []event.TopProb
}

// span is a part of a slice that all events of a line share.
type span struct{ from, to int }

func (c *columns) reset() {
	*c = columns{
		at: c.at[:0], dur: c.dur[:0], index: c.index[:0], step: c.step[:0], id: c.id[:0], n: c.n[:0], prompt: c.prompt[:0],
		sample: c.sample[:0], req: c.req[:0], logp: c.logp[:0], split: c.split[:0], text: c.text[:0], picks: c.picks[:0], top: c.top[:0],
		bytes: c.bytes[:0], experts: c.experts[:0], candidates: c.candidates[:0],
	}
}

// fit reports whether every column has an entry for each of n events, or one for all, or none.
func (c *columns) fit(n int) bool {
	for _, length := range [...]int{
		len(c.dur), len(c.index), len(c.step), len(c.id), len(c.n), len(c.prompt), len(c.sample), len(c.req), len(c.logp),
		len(c.split), len(c.text), len(c.picks), len(c.top),
	} {
		if length > 1 && length != n {
			return false
		}
	}
	return true
}

// of is the entry of event i.
func of[T any](column []T, i int, missing T) T {
	switch len(column) {
	case 0:
		return missing
	case 1:
		return column[0]
	}
	return column[i]
}

// readColumns reads a tok or step line.
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
	d.timed = n > 0 && !slices.Contains(c.at, absent)
	switch {
	case kind == event.KindToken && (len(c.req) == 0 || slices.Contains(c.req, 0)):
		s.fail("no request")
	case kind == event.KindStep && (len(c.dur) == 0 || slices.Contains(c.dur, absent)):
		s.fail("no duration")
	case !c.fit(n):
		s.fail("an array of another length")
	}
	return d.need(true, "")
}

// readCommon reads a column that tokens and steps have.
func (d *Decoder) readCommon(name byte) bool {
	c := &d.columns
	switch name {
	case 'a':
		c.at = d.differences(c.at)
	case 's':
		c.step = d.differences(c.step)
	case 'n':
		c.n = d.ints(c.n)
	case 'x':
		c.split = each(d, c.split, number0, d.readSplit)
	default:
		return false
	}
	return true
}

func (d *Decoder) readToken(name byte) bool {
	c, s := &d.columns, &d.scan
	switch name {
	case 'r':
		c.req = each(d, c.req, nothing, func() uint64 { v, _ := s.unsigned(); return v })
	case 'i':
		c.index = d.differences(c.index)
	case 'd':
		c.id = d.ints(c.id)
	case 'w':
		c.sample = d.ints(c.sample)
	case 'l':
		c.logp = each(d, c.logp, nothing, func() float64 {
			if v, ok := s.float(); ok {
				return v
			}
			return math.NaN()
		})
	case 'p':
		c.text = each(d, c.text, number0, func() span {
			from := len(c.bytes)
			c.bytes = d.text(c.bytes, MaxString)
			return span{from, len(c.bytes)}
		})
	case 'o':
		c.top = each(d, c.top, array0, d.readTop)
	case 'e':
		c.picks = each(d, c.picks, number0, d.readPicks)
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
		d.event.Data = d.readPass()
	default:
		return false
	}
	return true
}

// What the array of a single value begins with, so that it can be told from a column of such arrays.
const (
	nothing = iota // a single value is no array
	number0        // a number
	array0         // an array that begins with a number
)

// single reports whether a single value stands here and not a column.
func (d *Decoder) single(begins int) bool {
	if d.scan.peek() != '[' {
		return true
	}
	s := d.scan // looks ahead
	if begins == nothing {
		return false
	}
	s.at++
	if begins == array0 {
		if s.peek() != '[' {
			return false
		}
		s.at++
	}
	c := s.peek()
	return c == '-' || c >= '0' && c <= '9' || c == 'N' || c == 'I'
}

// each reads a column.
func each[T any](d *Decoder, column []T, begins int, read func() T) []T {
	s := &d.scan
	column = column[:0]
	if d.single(begins) {
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

// ints reads a column of numbers that are not negative; others become absent.
func (d *Decoder) ints(column []int64) []int64 {
	return each(d, column, nothing, func() int64 {
		if v, ok := d.scan.signed(); ok && v >= 0 {
			return v
		}
		return absent
	})
}

// differences reads a column whose later entries are told as differences.
func (d *Decoder) differences(column []int64) []int64 {
	last := int64(0)
	return each(d, column, nothing, func() int64 {
		v, ok := d.scan.signed()
		if !ok {
			return absent
		}
		last += v
		return last
	})
}

func (d *Decoder) readSplit() (split event.Split) {
	s := &d.scan
	parts := [...]*uint32{&split.Embed, &split.Attention, &split.Router, &split.Experts, &split.Head, &split.Sample}
	if !s.open('[') {
		return split
	}
	for i := 0; s.more(']'); i++ {
		v := min(d.count(), math.MaxUint32)
		if i < len(parts) {
			*parts[i] = uint32(v)
		}
	}
	return split
}

func (d *Decoder) readPicks() span {
	s, c := &d.scan, &d.columns
	from := len(c.experts)
	if s.open('[') {
		for s.more(']') {
			c.experts = append(c.experts, uint16(min(d.count(), math.MaxUint16)))
		}
	}
	return span{from, len(c.experts)}
}

// readTop reads the alternatives of one token.
func (d *Decoder) readTop() span {
	s, c := &d.scan, &d.columns
	from := len(c.candidates)
	if s.open('[') {
		for s.more(']') {
			if t := d.readCandidate(); len(c.candidates)-from < MaxTop {
				c.candidates = append(c.candidates, t)
			}
		}
	}
	return span{from, len(c.candidates)}
}

func (d *Decoder) readCandidate() (t event.TopProb) {
	s := &d.scan
	t.ID, t.LogP = -1, float32(math.Inf(-1))
	if !s.open('[') {
		return t
	}
	for i := 0; s.more(']'); i++ {
		switch i {
		case 0:
			t.ID = d.int32()
		case 1:
			if v, ok := s.float(); ok {
				t.LogP = float32(v)
			}
		case 2:
			t.Text = string(d.text(nil, MaxString))
		default:
			s.skip()
		}
	}
	return t
}
