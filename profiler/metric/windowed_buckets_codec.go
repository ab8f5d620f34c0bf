package metric

import (
	"encoding/binary"
	"slices"
)

// Append encodes w for Restore, without the past seconds. Most counts take one byte and compress well. Bounds are shared:
// they go once into the list bounds.
func (w *WindowedBuckets) Append(dst []byte, bounds *[][]int64) []byte {
	dst = binary.AppendVarint(dst, w.second)
	dst = binary.AppendVarint(dst, w.covers)
	dst = w.current.append(dst, bounds)
	dst = w.session.append(dst, bounds)
	dst = appendBounds(dst, w.bounds, bounds)
	return binary.AppendUvarint(dst, uint64(w.layout))
}

// append encodes b: count, sum, mixed, bounds, number of counts, counts.
func (b *Buckets) append(dst []byte, bounds *[][]int64) []byte {
	dst = binary.AppendUvarint(dst, b.Count)
	dst = binary.AppendVarint(dst, b.Sum)
	mixed := byte(0)
	if b.mixed {
		mixed = 1
	}
	dst = appendBounds(append(dst, mixed), b.bounds, bounds)
	dst = binary.AppendUvarint(dst, uint64(len(b.counts)))
	for _, n := range b.counts {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// appendBounds encodes the position of own in the list bounds, from 1 on, and adds it if needed; 0 means no bounds.
func appendBounds(dst []byte, own []int64, bounds *[][]int64) []byte {
	number := 0
	if len(own) > 0 {
		number = 1 + slices.IndexFunc(*bounds, func(b []int64) bool { return same(b, own) })
		if number == 0 {
			*bounds = append(*bounds, own)
			number = len(*bounds)
		}
	}
	return binary.AppendUvarint(dst, uint64(number))
}

// Restore decodes into w what Append encoded, with its past seconds, and returns the remaining bytes, nil if src is
// malformed.
func (w *WindowedBuckets) Restore(src []byte, bounds [][]int64, past PastBuckets) []byte {
	*w = WindowedBuckets{Keep: w.Keep, past: past}
	r := decoder{src}
	w.second, w.covers = r.signed(), r.signed()
	w.current, w.session = r.buckets(bounds), r.buckets(bounds)
	w.bounds, w.layout = r.bounds(bounds), uint16(r.unsigned())
	w.end = w.second
	w.sumRecent()
	return r.src
}

// decoder reads numbers. After an error src is nil and every further number is 0.
type decoder struct{ src []byte }

func (r *decoder) skip(n int) {
	if n <= 0 {
		r.src = nil
		return
	}
	r.src = r.src[n:]
}

func (r *decoder) signed() int64 {
	v, n := binary.Varint(r.src)
	r.skip(n)
	return v
}

func (r *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(r.src)
	r.skip(n)
	return v
}

func (r *decoder) byte() (b byte) {
	if len(r.src) > 0 {
		b = r.src[0]
	}
	r.skip(min(len(r.src), 1))
	return b
}

func (r *decoder) bounds(all [][]int64) []int64 {
	if n := r.unsigned(); n > 0 && n <= uint64(len(all)) {
		return all[n-1]
	}
	return nil
}

func (r *decoder) buckets(bounds [][]int64) (b Buckets) {
	b.Count, b.Sum, b.mixed, b.bounds = r.unsigned(), r.signed(), r.byte() == 1, r.bounds(bounds)
	n := r.unsigned()
	if n > uint64(len(r.src)) || n > 0 && n != uint64(len(b.bounds))+1 {
		r.src = nil
		return b
	}
	if n > 0 {
		b.counts = make([]uint64, n)
	}
	for i := range b.counts {
		b.counts[i] = r.unsigned()
	}
	return b
}
