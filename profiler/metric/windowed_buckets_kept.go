package metric

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Append appends w as bytes that Restore reads: a count a byte, mostly, which compresses well. Bounds of buckets are shared: they go into a list of
// those that differ.
func (w *WindowedBuckets) Append(dst []byte, bounds *[][]int64) []byte {
	dst = binary.AppendVarint(dst, w.second)
	dst = w.current.append(dst, bounds)
	dst = w.session.append(dst, bounds)
	dst = appendBounds(dst, w.bounds, bounds)
	dst = binary.AppendUvarint(dst, uint64(w.layout))
	at := len(dst)
	dst = append(dst, 0) // how many there are: at most 59, which takes one byte
	for _, p := range w.seconds() {
		if p.count == 0 || int64(p.second) <= w.second-60 {
			continue
		}
		dst[at]++
		dst = binary.AppendUvarint(dst, uint64(p.second))
		dst = binary.AppendUvarint(dst, uint64(p.layout))
		dst = binary.AppendUvarint(dst, p.count)
		dst = binary.AppendVarint(dst, p.sum)
		dst = binary.AppendUvarint(dst, uint64(len(p.counts)))
		dst = append(dst, p.counts...)
	}
	return dst
}

// append appends b: count, sum, whether it is mixed, its bounds, how many counts there are, and these.
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

// appendBounds appends the number of bounds in the list, from 1 on; 0: there are none.
func appendBounds(dst []byte, of []int64, bounds *[][]int64) []byte {
	number := 0
	if len(of) > 0 {
		number = 1 + slices.IndexFunc(*bounds, func(o []int64) bool { return same(o, of) })
		if number == 0 {
			*bounds = append(*bounds, of)
			number = len(*bounds)
		}
	}
	return binary.AppendUvarint(dst, uint64(number))
}

// Restore makes w what Append has written, and returns what follows; nil if it is something else.
func (w *WindowedBuckets) Restore(src []byte, bounds [][]int64) []byte {
	*w = WindowedBuckets{}
	r := reader{src}
	w.second = r.signed()
	w.current, w.session = r.buckets(bounds), r.buckets(bounds)
	w.bounds, w.layout = r.bounds(bounds), uint32(r.unsigned())
	for n := r.byte(); n > 0 && r.src != nil; n-- {
		p := packedBuckets{second: uint32(r.unsigned()), layout: uint32(r.unsigned()), count: r.unsigned(), sum: r.signed()}
		p.counts = bytes.Clone(r.bytes(r.unsigned()))
		if w.past == nil {
			w.past = new([slots]packedBuckets)
		}
		w.past[p.second%slots] = p
	}
	return r.src
}

// reader reads numbers. After one that is not there src is nil, and every other is 0.
type reader struct{ src []byte }

func (r *reader) skip(n int) {
	if n <= 0 {
		r.src = nil
		return
	}
	r.src = r.src[n:]
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.src)
	r.skip(n)
	return v
}

func (r *reader) unsigned() uint64 {
	v, n := binary.Uvarint(r.src)
	r.skip(n)
	return v
}

func (r *reader) byte() (b byte) {
	if len(r.src) > 0 {
		b = r.src[0]
	}
	r.skip(min(len(r.src), 1))
	return b
}

// bytes are the next n bytes.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.src)) {
		r.src = nil
		return nil
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) bounds(all [][]int64) []int64 {
	if n := r.unsigned(); n > 0 && n <= uint64(len(all)) {
		return all[n-1]
	}
	return nil
}

func (r *reader) buckets(bounds [][]int64) (b Buckets) {
	b.Count, b.Sum, b.mixed, b.bounds = r.unsigned(), r.signed(), r.byte() == 1, r.bounds(bounds)
	n := r.unsigned()
	if n > uint64(len(r.src)) {
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
