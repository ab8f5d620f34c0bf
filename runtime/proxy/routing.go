package proxy

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/routed"
)

// route takes the picks that a message tells, the first ones of several.
func (f *fact) route(text blob, answers int) {
	if f.routed == "" && text != "" {
		f.routed, f.answers = string(text), answers
	}
}

// errNoUsage is why picks are not counted.
var errNoUsage = errors.New("it does not say how many of its picks are the prompt's")

// rows are how many tokens an answer tells picks of, and how many of them are the prompt's: of all tokens but the last, without those at the beginning
// that the client did not want.
func (f *fact) rows(told int) (rows, prompt int) {
	rows = f.prompt + f.generated - 1
	if told == 0 || told > rows || f.answers > 1 {
		return rows, f.prompt
	}
	return told, max(f.prompt-(rows-told), 0)
}

// unrouted is the doubt about picks that were not counted.
func unrouted(why error) doubt {
	const words = "picks of experts in answers were not counted: "
	switch {
	case errors.Is(why, errNoUsage):
		return doubt(words + errNoUsage.Error())
	case errors.Is(why, routed.ErrShape):
		return words + "give --experts-used, the number that each token picks"
	}
	return words + "they could not be understood"
}

// picks counts the picks of an answer that has ended.
func (x *exchange) picks(f *fact) error {
	if f.routed == "" {
		return nil
	}
	if f.prompt == 0 || f.generated == 0 {
		return errNoUsage
	}
	rows, _ := f.rows(0)
	p, err := routed.Decode([]byte(f.routed), x.proxy.opt.ExpertsUsed, rows)
	if err != nil {
		return err
	}
	_, prompt := f.rows(p.Tokens)
	counts, err := x.proxy.picks.Add(p, prompt)
	if err != nil {
		return err
	}
	x.proxy.link.can(event.CapExperts)
	x.proxy.sink.Emit(event.Event{Kind: event.KindExperts, At: x.proxy.opt.Clock.Now(), Layer: -1, Data: counts})
	return nil
}
