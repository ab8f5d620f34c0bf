package cmd

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/zmq"
)

// publishers are the sockets at which one server publishes.
type publishers []*zmq.Source

// publishers are those that the user has named.
func (a *attached) publishers() (out publishers, err error) {
	losses := new(zmq.Losses)
	for _, at := range a.opt.zmq {
		s, err := zmq.New(at, a.clock, losses)
		if err != nil {
			return nil, usagef("--zmq: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
}

// Numbers are what has come from all of them since they were asked for last: counts add up, of mean times the longest is told.
func (p publishers) Numbers() (out []event.Number) {
	for _, s := range p {
		for _, n := range s.Numbers() {
			i, twice := slices.BinarySearchFunc(out, n.Name, func(m event.Number, name string) int { return strings.Compare(m.Name, name) })
			switch {
			case !twice:
				out = slices.Insert(out, i, n)
			case strings.HasSuffix(n.Name, "_s"): // of the ranks of one engine, which run their passes together
				out[i].V = max(out[i].V, n.V)
			default:
				out[i].V += n.V
			}
		}
	}
	return out
}

// Passes reports whether one of them tells of forward passes.
func (p publishers) Passes() bool {
	return slices.ContainsFunc(p, (*zmq.Source).Passes)
}
