package metric

import "github.com/llmtop/llmtop/profiler/event"

// maxChoices is how many choices of a request are measured apart.
const maxChoices = 128

// Choices are the sequences that a request generates together, by number; nil: one.
type Choices []Choice

// Choice is when the first and the last token of a sequence came; 0: none has.
type Choice struct{ First, Last event.Time }

// Add adds a token of choice n, and returns when the previous token of that choice came, 0 for the first. all is when
// the first and the last token of the request came.
func (c *Choices) Add(n uint16, at event.Time, all Choice) (last event.Time) {
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
	last, one.Last = one.Last, at
	if one.First == 0 {
		one.First = at
	}
	return last
}

// Span returns the sum over the choices of the time from the first token to the last, in ns.
func (c Choices) Span() (ns int64) {
	for _, one := range c {
		ns = event.Add(ns, int64(one.Last-one.First))
	}
	return ns
}
