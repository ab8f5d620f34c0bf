package wire

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// The columns of tok and step lines are written and read by hand: they are the hottest part of the protocol, and with a
// table of columns a token in a line of its own takes a third longer to write. A column stands here, in columns and
// readColumns, and in emitTokens or emitSteps.

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
	out = b.logprobs(out)
	out = b.texts(out)
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
