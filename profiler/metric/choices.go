package metric

import "github.com/llmtop/llmtop/profiler/event"

// maxChoices is how many choices of a request are measured apart.
const maxChoices = 128

// Choices are the sequences that a request generates together, by number; nil: one.
type Choices []Choice

// Choice is when the first and the last token of a sequence came; 0: none has.
type Choice struct {
	First, Last event.Time
	AtFirst     int // tokens that came with the first
}

// Add adds k tokens of a sequence that came together.
func (c *Choice) Add(at event.Time, k int) {
	if c.Last = at; c.First == 0 {
		c.First = at
	}
	if c.First == at {
		c.AtFirst += k
	}
}

// Add adds k tokens of choice n, and returns when the previous token of that choice came, 0 for the first. all is the
// request before them.
func (c *Choices) Add(n uint16, at event.Time, k int, all Choice) (last event.Time) {
	switch {
	case n == 0 && *c == nil:
		return all.Last
	case n >= maxChoices:
		return 0
	case *c == nil:
		*c = Choices{all}
	}
	for len(*c) <= int(n) {
		*c = append(*c, Choice{})
	}
	one := &(*c)[n]
	last = one.Last
	one.Add(at, k)
	return last
}

// Span returns the sum over the choices of the time from the first token to the last, in ns, and of the tokens that came
// with the first.
func (c Choices) Span() (ns int64, first int) {
	for _, one := range c {
		ns, first = event.Add(ns, int64(one.Last-one.First)), first+one.AtFirst
	}
	return ns, first
}
