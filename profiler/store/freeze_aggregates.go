package store

import (
	"slices"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/metric"
)

// frozenAggregates is a compact copy of aggregates, which shares the past seconds of the histograms.
type frozenAggregates struct {
	aggregates                      // without windows
	bounds     [][]int64            // bucket bounds of each histogram, ns
	packed     []byte               // windows in the order of names, compressed
	past       []metric.PastBuckets // in the order of names
}

// freeze returns a compact copy.
func (r *aggregates) freeze(pack func([]byte) []byte) frozenAggregates {
	if !r.reported {
		return frozenAggregates{aggregates: *r}
	}
	f := frozenAggregates{aggregates: *r}
	f.names, f.windows, f.numbers, f.shown, f.load = slices.Clip(r.names), nil, slices.Clone(r.numbers), nil, r.load.clone()
	var histograms []byte
	for _, w := range r.windows {
		histograms = w.Append(histograms, &f.bounds)
		f.past = append(f.past, w.Past())
	}
	f.packed = pack(histograms)
	return f
}

// size returns the memory that f refers to, in bytes.
func (f *frozenAggregates) size() (n int) {
	if !f.reported {
		return 0
	}
	for i := range f.last.Histograms {
		n += 8 * len(f.last.Histograms[i].Counts)
	}
	n += 8 * len(f.load.session) * (len(f.load.slots) + 1)
	return n + 128 + len(f.packed) + int(unsafe.Sizeof(serverNumber{}))*len(f.numbers)
}

// thaw returns aggregates that continue from the frozen ones.
func (f *frozenAggregates) thaw(unpack func([]byte) []byte) aggregates {
	if !f.reported {
		return f.aggregates
	}
	r := f.aggregates
	r.names, r.windows = f.names, make([]*metric.WindowedBuckets, len(f.names))
	r.numbers, r.load = slices.Clone(f.numbers), f.load.clone()
	histograms := unpack(f.packed)
	for i := range r.windows {
		r.windows[i] = &metric.WindowedBuckets{Keep: r.keep}
		histograms = r.windows[i].Restore(histograms, f.bounds, f.past[i])
	}
	return r
}
