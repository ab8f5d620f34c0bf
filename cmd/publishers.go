package cmd

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/zmq"
)

// publishers are the ZMQ sockets of one server.
type publishers []*zmq.Subscriber

// openPublishers opens the sockets of --zmq.
func (a *attached) openPublishers() (out publishers, err error) {
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

// Numbers returns the readings of all sockets since the last call: the sum of counts, the longest of mean times.
func (p publishers) Numbers() (out []event.NamedReading) {
	for _, s := range p {
		for _, n := range s.Numbers() {
			i, twice := slices.BinarySearchFunc(out, n.Name, func(m event.NamedReading, name string) int { return strings.Compare(m.Name, name) })
			switch {
			case !twice:
				out = slices.Insert(out, i, n)
			case strings.HasSuffix(n.Name, "_s"): // ranks of one engine run their forward passes together
				out[i].V = max(out[i].V, n.V)
			default:
				out[i].V += n.V
			}
		}
	}
	return out
}

// Passes reports whether a socket publishes forward passes.
func (p publishers) Passes() bool {
	return slices.ContainsFunc(p, (*zmq.Subscriber).Passes)
}
