//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// ops holds the times of operations in the passes with Hooks.Ops. One pass in unwatchedEvery is not observed, to
// measure the overhead of observing.
type ops struct {
	times  map[opKey]*event.OpTime
	layer  int // layer of the last node that named one
	passes int

	watched, unwatched duration
}

func newOps() *ops { return &ops{times: map[opKey]*event.OpTime{}} }

type opKey struct {
	op    string
	layer int
}

// duration sums the times of decode passes per row.
type duration struct {
	n   int
	sum time.Duration
}

// unwatchedEvery is the interval of passes that are not observed.
const unwatchedEvery = 8

// begin prepares for a pass and reports whether to observe it.
func (o *ops) begin(pass int) bool {
	o.layer = -1
	return pass%unwatchedEvery != 0
}

// add adds a computed node, of a model with the given number of layers. A node without a layer in its name belongs to
// the layer of the previous node, until the node that ends the layer.
func (o *ops) add(op, name string, layers int, took time.Duration) {
	if n, ok := layerIn(name); ok && n < layers {
		o.layer = n
	} else if strings.HasPrefix(name, nodeResult) {
		o.layer = -1
	}
	k := opKey{op, o.layer}
	sum := o.times[k]
	if sum == nil {
		sum = &event.OpTime{Op: op, Layer: o.layer}
		o.times[k] = sum
	}
	sum.Calls++
	sum.Dur += int64(took)
	if strings.HasPrefix(name, nodeLayer) {
		if o.layer++; o.layer >= layers {
			o.layer = -1
		}
	}
}

// nodeResult is the name prefix of nodes after the layers.
const nodeResult = "result_"

// layerIn returns the layer in the name of a node: the number after its last hyphen, before a suffix such as " (view)".
func layerIn(name string) (int, bool) {
	name, _, _ = strings.Cut(name, " ")
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(name[i+1:])
	return n, err == nil && n >= 0
}

// pass adds the time of a pass.
func (o *ops) pass(rows int, watched bool, took time.Duration) {
	if watched {
		o.passes++
	}
	if rows != 1 {
		return
	}
	d := &o.unwatched
	if watched {
		d = &o.watched
	}
	d.n++
	d.sum += took
}

// snapshot returns a copy, longest first.
func (o *ops) snapshot() *event.Ops {
	if o.passes == 0 {
		return nil
	}
	out := &event.Ops{Passes: int64(o.passes), Slowdown: event.Absent(event.NotYet)}
	if o.watched.n > 0 && o.unwatched.n > 0 {
		out.Slowdown = event.MeasuredValue(o.watched.mean() / o.unwatched.mean())
	}
	for _, sum := range o.times {
		out.Times = append(out.Times, *sum)
	}
	slices.SortFunc(out.Times, func(a, b event.OpTime) int {
		return cmp.Or(-cmp.Compare(a.Dur, b.Dur), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Layer, b.Layer))
	})
	return out
}

func (d *duration) mean() float64 { return float64(d.sum) / float64(d.n) }
