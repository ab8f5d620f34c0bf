package wire

import (
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

func finish(dst, out []byte, from int) ([]byte, error) {
	if len(out)-from > MaxLine {
		return dst, ErrEvent
	}
	return out, nil
}

// batch is the events of one line. Values that are equal in all events are written once.
type batch struct {
	events, steps []event.Event
}

func (b *batch) times(dst []byte) []byte {
	return b.differences(dst, "a", func(e *event.Event) (int64, bool) { return int64(bounded(e.At)), true })
}

// requests appends the request of each token.
func (b *batch) requests(dst []byte) []byte {
	same := true
	for i := range b.events {
		same = same && b.events[i].Req == b.events[0].Req
	}
	dst = key(dst, "r")
	if same {
		return strconv.AppendUint(dst, uint64(b.events[0].Req), 10)
	}
	return b.array(dst, func(dst []byte, e *event.Event) []byte { return strconv.AppendUint(dst, uint64(e.Req), 10) })
}

// ints appends a column of numbers. value returns false for a missing one. The column is omitted if all are missing.
func (b *batch) ints(dst []byte, name string, value func(*event.Event) (int64, bool)) []byte {
	first, present := value(&b.events[0])
	same := true
	for i := 1; i < len(b.events) && same; i++ {
		v, ok := value(&b.events[i])
		same = ok == present && (v == first || !ok)
	}
	switch {
	case !same:
		return b.array(key(dst, name), func(dst []byte, e *event.Event) []byte {
			v, ok := value(e)
			if !ok {
				return append(dst, "null"...)
			}
			return strconv.AppendInt(dst, v, 10)
		})
	case present:
		return strconv.AppendInt(key(dst, name), first, 10)
	}
	return dst
}

// differences appends a column of numbers: the first one, then the difference of each from the previous present one.
func (b *batch) differences(dst []byte, name string, value func(*event.Event) (int64, bool)) []byte {
	if len(b.events) == 1 {
		return b.ints(dst, name, value)
	}
	present := false
	for i := range b.events {
		_, ok := value(&b.events[i])
		present = present || ok
	}
	if !present {
		return dst
	}
	last := int64(0)
	return b.array(key(dst, name), func(dst []byte, e *event.Event) []byte {
		v, ok := value(e)
		if !ok {
			return append(dst, "null"...)
		}
		dst = strconv.AppendInt(dst, v-last, 10)
		last = v
		return dst
	})
}

// column appends a column of arrays or texts. present reports whether an event has a value.
func (b *batch) column(dst []byte, name string, present func(*event.Event) bool, value func([]byte, *event.Event) []byte) []byte {
	any := false
	for i := range b.events {
		any = any || present(&b.events[i])
	}
	if !any {
		return dst
	}
	dst = key(dst, name)
	if len(b.events) == 1 {
		return value(dst, &b.events[0])
	}
	return b.array(dst, func(dst []byte, e *event.Event) []byte {
		if !present(e) {
			return append(dst, "null"...)
		}
		return value(dst, e)
	})
}

func (b *batch) array(dst []byte, value func([]byte, *event.Event) []byte) []byte {
	dst = append(dst, '[')
	for i := range b.events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(dst, &b.events[i])
	}
	return append(dst, ']')
}

// splits appends the split time of each event: only the sampling time if the rest matches the step of that number.
func (b *batch) splits(dst []byte) []byte {
	matches := func(e *event.Event) bool {
		s, ok := b.step(e.Step)
		if !ok {
			return false
		}
		s.Sample = e.Split.Sample
		return s == e.Split
	}
	dst = b.ints(dst, "w", func(e *event.Event) (int64, bool) {
		return int64(e.Split.Sample), e.Split != (event.Split{}) && matches(e)
	})
	return b.column(dst, "x", func(e *event.Event) bool { return e.Split != (event.Split{}) && !matches(e) },
		func(dst []byte, e *event.Event) []byte {
			s := &e.Split
			return appendUints(dst, s.Embed, s.Attention, s.Router, s.Experts, s.Head, s.Sample)
		})
}

// step returns the split time of a pass. Passes are in order of their numbers, mostly without gaps.
func (b *batch) step(number uint64) (event.Split, bool) {
	if len(b.steps) == 0 || number == 0 {
		return event.Split{}, false
	}
	i := number - b.steps[0].Step
	if i >= uint64(len(b.steps)) || b.steps[i].Step != number {
		return event.Split{}, false
	}
	return b.steps[i].Split, true
}

// appendTop appends the alternatives of a token.
func appendTop(dst []byte, e *event.Event) []byte {
	return appendArray(dst, e.Top[:min(len(e.Top), MaxTop)], func(dst []byte, t event.TopProb) []byte {
		dst = strconv.AppendInt(append(dst, '['), int64(t.ID), 10)
		dst = appendFloat(append(dst, ','), float64(t.LogP), 32)
		if t.Text != "" {
			dst = appendText(append(dst, ','), t.Text)
		}
		return append(dst, ']')
	})
}

// noValue marks a missing number in a column.
const noValue = math.MinInt64

// keptPasses is how many forward passes a token line may lag behind its pass: 32 bytes each, 128 KiB.
const keptPasses = 4096

// pass is the split time of a forward pass.
type pass struct {
	number uint64
	split  event.Split
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

// maxShared is how many bytes of text, picks or alternatives the tokens of a line share in one allocation. A consumer
// that keeps one of them keeps all.
const maxShared = 1024

// cloneSmall copies a list of at most maxShared elements; nil if it is longer.
func cloneSmall[T any](all []T) []T {
	if len(all) > maxShared {
		return nil
	}
	return slices.Clone(all)
}

// part returns the range of one token: of the shared copy, or a copy of its own.
func part[T any](shared, all []T, s byteRange) []T {
	if shared == nil {
		return slices.Clone(all[s.from:s.to])
	}
	return shared[s.from:s.to:s.to]
}

// storeSplit keeps the split time of a pass for later tokens.
func (d *Decoder) storeSplit(step uint64, split event.Split) {
	if step == 0 || split == (event.Split{}) {
		return
	}
	if d.passes == nil {
		d.passes = make([]pass, keptPasses)
	}
	d.passes[step%keptPasses] = pass{step, split}
}

// splitOf returns the split time of a pass, if it was received and is recent.
func (d *Decoder) splitOf(step uint64) event.Split {
	if d.passes == nil || step == 0 {
		return event.Split{}
	}
	if p := &d.passes[step%keptPasses]; p.number == step {
		return p.split
	}
	return event.Split{}
}

// toInt32 converts v, or returns missing if v is negative.
func toInt32(v int64, missing int32) int32 {
	if v < 0 {
		return missing
	}
	return int32(min(v, math.MaxInt32))
}
