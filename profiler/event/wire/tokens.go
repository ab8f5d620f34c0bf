package wire

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// The columns of tok and step lines are written and read by hand: they are the hottest part of the protocol, and with a
// table of columns a token in a line of its own takes a third longer to write. All that a column needs stands here: it is
// written by AppendTokens or AppendSteps, read by readToken, readStep or readCommon, and emitted by emitTokens or emitSteps.

// AppendTokens appends tokens as one line without its end, at least one and at most MaxBatch. steps are forward passes
// that the reader has already received: a token whose split matches its pass in steps stores only its sampling time.
func AppendTokens(dst []byte, tokens []event.Event, steps []event.Event) ([]byte, error) {
	from := len(dst)
	b := batch{events: tokens, steps: steps}
	out := append(dst, `{"t":"tok"`...)
	out = b.times(out)
	if slices.ContainsFunc(tokens, func(e event.Event) bool { return e.Req == 0 }) {
		return dst, ErrEvent
	}
	out = b.requests(out)
	out = b.differences(out, "i", func(e *event.Event) (int64, bool) { return int64(e.Index), e.Index >= 0 })
	out = b.ints(out, "d", func(e *event.Event) (int64, bool) { return int64(e.ID), e.ID >= 0 })
	out = b.ints(out, "n", func(e *event.Event) (int64, bool) { return int64(e.N), e.N >= 0 && e.N != 1 })
	out = b.ints(out, "c", func(e *event.Event) (int64, bool) { return int64(e.Choice), e.Choice != 0 })
	out = b.differences(out, "s", func(e *event.Event) (int64, bool) { return int64(min(e.Step, event.MaxNumber)), e.Step != 0 })
	out = b.column(out, "l", func(e *event.Event) bool { return e.HasLogP }, func(dst []byte, e *event.Event) []byte {
		return appendFloat(dst, float64(e.LogP), 32)
	})
	out = b.column(out, "p", func(e *event.Event) bool { return e.Text != "" }, func(dst []byte, e *event.Event) []byte {
		return appendText(dst, e.Text)
	})
	out = b.splits(out)
	out = b.column(out, "o", func(e *event.Event) bool { return len(e.Top) > 0 }, appendTop)
	out = b.column(out, "e", func(e *event.Event) bool { return len(e.Picks) > 0 }, func(dst []byte, e *event.Event) []byte {
		return appendPicks(dst, e.Picks)
	})
	return finish(dst, append(out, '}'), from)
}

// AppendSteps appends forward passes as one line without its end. Only a single pass may have a *event.Pass.
func AppendSteps(dst []byte, steps []event.Event) ([]byte, error) {
	from := len(dst)
	b := batch{events: steps}
	out := append(dst, `{"t":"step"`...)
	out = b.times(out)
	out = b.ints(out, "dur", func(e *event.Event) (int64, bool) { return min(max(e.Dur, 0), event.MaxNumber), true })
	out = b.differences(out, "s", func(e *event.Event) (int64, bool) { return int64(min(e.Step, event.MaxNumber)), e.Step != 0 })
	out = b.ints(out, "n", func(e *event.Event) (int64, bool) { return int64(e.N), e.N > 0 })
	out = b.ints(out, "m", func(e *event.Event) (int64, bool) { return int64(e.Prompt), e.Prompt > 0 })
	out = b.splits(out)
	if p, ok := steps[0].Data.(*event.Pass); ok && p != nil && len(steps) == 1 {
		out = passFields.object(key(out, "fpm"), p)
	}
	return finish(dst, append(out, '}'), from)
}

// columns are the values of a tok or step line. Each column is empty, has one value for all events, or one per event.
type columns struct {
	numbers          [numColumns][]int64
	req              []uint64
	logp             []float64 // NaN: missing
	split            []event.Split
	text, picks, top []byteRange // ranges of bytes, experts, candidates
	bytes            []byte
	experts          []uint16
	candidates       []event.TopProb
}

// The columns of numbers.
const (
	atColumn = iota
	durColumn
	indexColumn
	stepColumn
	idColumn
	nColumn
	promptColumn
	sampleColumn
	choiceColumn
	numColumns
)

// byteRange is a range of a slice that all events of a line share.
type byteRange struct{ from, to int }

// reset empties the columns.
func (c *columns) reset() {
	for i := range c.numbers {
		c.numbers[i] = c.numbers[i][:0]
	}
	c.req, c.logp, c.split, c.text, c.picks, c.top = c.req[:0], c.logp[:0], c.split[:0], c.text[:0], c.picks[:0], c.top[:0]
	c.bytes, c.experts, c.candidates = c.bytes[:0], c.experts[:0], c.candidates[:0]
}

// fit reports whether every column has no value, one, or n.
func (c *columns) fit(n int) bool {
	fits := func(length int) bool { return length <= 1 || length == n }
	for i := range c.numbers {
		if !fits(len(c.numbers[i])) {
			return false
		}
	}
	return fits(len(c.req)) && fits(len(c.logp)) && fits(len(c.split)) && fits(len(c.text)) && fits(len(c.picks)) && fits(len(c.top))
}

// number returns the number of event i in a column.
func (c *columns) number(column, i int, missing int64) int64 {
	return valueAt(c.numbers[column], i, missing)
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
	n := len(c.numbers[atColumn])
	d.hasTime = n > 0 && !slices.Contains(c.numbers[atColumn], noValue)
	switch {
	case kind == event.KindToken && (len(c.req) == 0 || slices.Contains(c.req, 0)):
		s.fail("no request")
	case kind == event.KindStep && (len(c.numbers[durColumn]) == 0 || slices.Contains(c.numbers[durColumn], noValue)):
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
		c.numbers[atColumn] = d.differences(c.numbers[atColumn], func(v int64) bool { return event.Time(v).Plausible() })
	case 's':
		c.numbers[stepColumn] = d.differences(c.numbers[stepColumn], plausibleNumber)
	case 'n':
		c.numbers[nColumn] = d.ints(c.numbers[nColumn])
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
		c.numbers[indexColumn] = d.differences(c.numbers[indexColumn], plausibleNumber)
	case 'd':
		c.numbers[idColumn] = d.ints(c.numbers[idColumn])
	case 'c':
		c.numbers[choiceColumn] = d.ints(c.numbers[choiceColumn])
	case 'w':
		c.numbers[sampleColumn] = d.ints(c.numbers[sampleColumn])
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
		c.numbers[durColumn] = d.ints(c.numbers[durColumn])
	case "m":
		c.numbers[promptColumn] = d.ints(c.numbers[promptColumn])
	case "fpm":
		d.event.Data = readPass(d)
	default:
		return false
	}
	return true
}

// emitTokens emits the tokens of the line.
func (d *Decoder) emitTokens(emit func(event.Event)) {
	c := &d.columns
	var text string // of all tokens, if it is short
	if len(c.bytes) <= maxShared {
		text = string(c.bytes)
	}
	picks, top := cloneSmall(c.experts), cloneSmall(c.candidates)
	for i, at := range c.numbers[atColumn] {
		e := event.Event{
			Kind: event.KindToken, Layer: -1, At: event.Time(at), Req: event.RequestID(valueAt(c.req, i, 0)),
			ID: toInt32(c.number(idColumn, i, noValue), -1), N: toInt32(c.number(nColumn, i, noValue), 1), Index: toInt32(c.number(indexColumn, i, noValue), -1),
			Step: uint64(max(c.number(stepColumn, i, noValue), 0)), Choice: uint16(min(max(c.number(choiceColumn, i, noValue), 0), math.MaxUint16)),
		}
		if l := valueAt(c.logp, i, math.NaN()); !math.IsNaN(l) && !math.IsInf(float64(float32(l)), 0) {
			e.LogP, e.HasLogP = float32(l), true
		}
		if s := valueAt(c.text, i, byteRange{}); s.to > s.from {
			if text != "" {
				e.Text = text[s.from:s.to]
			} else {
				e.Text = string(c.bytes[s.from:s.to])
			}
		}
		if s := valueAt(c.picks, i, byteRange{}); s.to > s.from {
			e.Picks = part(picks, c.experts, s)
		}
		if s := valueAt(c.top, i, byteRange{}); s.to > s.from {
			e.Top = part(top, c.candidates, s)
		}
		e.Split = valueAt(c.split, i, event.Split{})
		if w := c.number(sampleColumn, i, noValue); w != noValue && e.Split == (event.Split{}) {
			e.Split = d.splitOf(e.Step)
			e.Split.Sample = uint32(min(w, math.MaxUint32))
		}
		emit(e)
	}
}

// emitSteps emits the forward passes of the line.
func (d *Decoder) emitSteps(emit func(event.Event)) {
	c := &d.columns
	for i, at := range c.numbers[atColumn] {
		e := event.Event{
			Kind: event.KindStep, Layer: -1, At: event.Time(at), Dur: c.number(durColumn, i, 0), Step: uint64(max(c.number(stepColumn, i, noValue), 0)),
			N: toInt32(c.number(nColumn, i, noValue), 0), Prompt: toInt32(c.number(promptColumn, i, noValue), 0), Split: valueAt(c.split, i, event.Split{}),
			Data: d.event.Data,
		}
		d.storeSplit(e.Step, e.Split)
		emit(e)
	}
}
