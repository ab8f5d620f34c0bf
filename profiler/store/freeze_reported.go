package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/metric"
)

// frozenReported is what was told in reports. Of a server that counts seven kinds of times, the seconds of the last minute take some 5 KB.
type frozenReported struct {
	reported           // without spans
	bounds   [][]int64 // of the buckets
	packed   []byte    // the spans, in the order of names
}

// freeze keeps what was told; nil if nothing was.
func (r *reported) freeze(pack func([]byte) []byte) *frozenReported {
	if r == nil {
		return nil
	}
	f := &frozenReported{reported: *r}
	f.names, f.spans = slices.Clone(r.names), nil
	var spans []byte
	for _, name := range r.names {
		spans = r.spans[name].Append(spans, &f.bounds)
	}
	f.packed = pack(spans)
	return f
}

// size is the memory that it takes, in bytes.
func (f *frozenReported) size() (n int) {
	if f == nil {
		return 0
	}
	for i := range f.last.Times {
		n += 8 * len(f.last.Times[i].Counts)
	}
	return n + 512 + len(f.packed)
}

// thaw is what was told, to go on from.
func (f *frozenReported) thaw(unpack func([]byte) []byte) *reported {
	if f == nil {
		return nil
	}
	r := f.reported
	r.names, r.spans = slices.Clone(f.names), make(map[string]*metric.WindowedBuckets, len(f.names))
	spans := unpack(f.packed)
	for _, name := range f.names {
		w := new(metric.WindowedBuckets)
		spans = w.Restore(spans, f.bounds)
		r.spans[name] = w
	}
	return &r
}
