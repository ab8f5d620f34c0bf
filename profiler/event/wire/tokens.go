package wire

import (
	"math"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// AppendTokens appends tokens as one line without a line end, as Append does with one of them. There must be at least one and at most
// MaxBatch. Where a pass in steps, which the reader must have been told of before, says where the time of a token's pass went, only
// the sampling of the token is written.
func AppendTokens(dst []byte, tokens []event.Event, steps []event.Event) ([]byte, error) {
	from := len(dst)
	b := batch{events: tokens, steps: steps}
	out := append(dst, `{"t":"tok"`...)
	out = b.times(out)
	out = b.requests(out)
	out = b.differences(out, "i", func(e *event.Event) (int64, bool) { return int64(e.Index), e.Index >= 0 })
	out = b.ints(out, "d", func(e *event.Event) (int64, bool) { return int64(e.ID), e.ID >= 0 })
	out = b.ints(out, "n", func(e *event.Event) (int64, bool) { return int64(e.N), e.N != 1 })
	out = b.differences(out, "s", func(e *event.Event) (int64, bool) { return int64(min(e.Step, math.MaxInt64)), e.Step != 0 })
	out = b.logprobs(out)
	out = b.texts(out)
	out = b.splits(out)
	out = b.column(out, "o", func(e *event.Event) bool { return len(e.Top) > 0 }, appendTop)
	out = b.column(out, "e", func(e *event.Event) bool { return len(e.Picks) > 0 }, func(dst []byte, e *event.Event) []byte {
		return appendUints(dst, e.Picks...)
	})
	return finish(dst, append(out, '}'), from)
}

// AppendSteps appends forward passes as one line without a line end. None of several may have a *event.Pass.
func AppendSteps(dst []byte, steps []event.Event) ([]byte, error) {
	from := len(dst)
	b := batch{events: steps}
	out := append(dst, `{"t":"step"`...)
	out = b.times(out)
	out = b.ints(out, "dur", func(e *event.Event) (int64, bool) { return max(e.Dur, 0), true })
	out = b.differences(out, "s", func(e *event.Event) (int64, bool) { return int64(min(e.Step, math.MaxInt64)), e.Step != 0 })
	out = b.ints(out, "n", func(e *event.Event) (int64, bool) { return int64(e.N), e.N > 0 })
	out = b.ints(out, "m", func(e *event.Event) (int64, bool) { return int64(e.Prompt), e.Prompt > 0 })
	out = b.splits(out)
	if p, ok := steps[0].Data.(*event.Pass); ok && p != nil && len(steps) == 1 {
		out = appendPass(key(out, "fpm"), p)
	}
	return finish(dst, append(out, '}'), from)
}

func finish(dst, out []byte, from int) ([]byte, error) {
	if len(out)-from > MaxLine {
		return dst, ErrEvent
	}
	return out, nil
}

// batch is what one line is about: values that are the same in all events are written once.
type batch struct {
	events, steps []event.Event
}

func (b *batch) times(dst []byte) []byte {
	return b.differences(dst, "a", func(e *event.Event) (int64, bool) { return int64(e.At), true })
}

// requests writes the request of each token.
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

// ints writes a column of numbers. value says false for one that is absent; the column is left out if all are.
func (b *batch) ints(dst []byte, name string, value func(*event.Event) (int64, bool)) []byte {
	first, told := value(&b.events[0])
	same := true
	for i := 1; i < len(b.events) && same; i++ {
		v, ok := value(&b.events[i])
		same = ok == told && (v == first || !ok)
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
	case told:
		return strconv.AppendInt(key(dst, name), first, 10)
	}
	return dst
}

// differences writes a column of numbers as the first one and what each later one adds to the one before that is told.
func (b *batch) differences(dst []byte, name string, value func(*event.Event) (int64, bool)) []byte {
	if len(b.events) == 1 {
		return b.ints(dst, name, value)
	}
	told := false
	for i := range b.events {
		_, ok := value(&b.events[i])
		told = told || ok
	}
	if !told {
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

// column writes a column of values that are arrays themselves, or texts.
func (b *batch) column(dst []byte, name string, told func(*event.Event) bool, value func([]byte, *event.Event) []byte) []byte {
	any := false
	for i := range b.events {
		any = any || told(&b.events[i])
	}
	if !any {
		return dst
	}
	dst = key(dst, name)
	if len(b.events) == 1 {
		return value(dst, &b.events[0])
	}
	return b.array(dst, func(dst []byte, e *event.Event) []byte {
		if !told(e) {
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

func (b *batch) logprobs(dst []byte) []byte {
	return b.column(dst, "l", func(e *event.Event) bool { return e.HasLogP }, func(dst []byte, e *event.Event) []byte {
		return appendFloat(dst, float64(e.LogP), 32)
	})
}

func (b *batch) texts(dst []byte) []byte {
	return b.column(dst, "p", func(e *event.Event) bool { return e.Text != "" }, func(dst []byte, e *event.Event) []byte {
		return appendText(dst, e.Text)
	})
}

// splits writes where the time of each event's pass went: only the sampling if a step of the same number says the rest.
func (b *batch) splits(dst []byte) []byte {
	joined := func(e *event.Event) bool {
		s, ok := b.step(e.Step)
		if !ok {
			return false
		}
		s.Sample = e.Split.Sample
		return s == e.Split
	}
	dst = b.ints(dst, "w", func(e *event.Event) (int64, bool) {
		return int64(e.Split.Sample), e.Split != (event.Split{}) && joined(e)
	})
	return b.column(dst, "x", func(e *event.Event) bool { return e.Split != (event.Split{}) && !joined(e) },
		func(dst []byte, e *event.Event) []byte {
			s := &e.Split
			return appendUints(dst, s.Embed, s.Attention, s.Router, s.Experts, s.Head, s.Sample)
		})
}

// step is where the time of a pass went. Passes stand in the order of their numbers, mostly without gaps.
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
	dst = append(dst, '[')
	for i, t := range e.Top[:min(len(e.Top), MaxTop)] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '['), int64(t.ID), 10)
		dst = appendFloat(append(dst, ','), float64(t.LogP), 32)
		if t.Text != "" {
			dst = appendText(append(dst, ','), t.Text)
		}
		dst = append(dst, ']')
	}
	return append(dst, ']')
}
