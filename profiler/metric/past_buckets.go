package metric

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// PastBuckets holds the Buckets of past seconds in some 30 bytes each. Copies share them: a second is never written again.
type PastBuckets struct {
	seconds []pastSecond // oldest first
	packed  []byte       // of each second as varints: count, sum, index of the first used bucket, counts up to the last used one
}

type pastSecond struct {
	second uint32
	covers uint16 // seconds that it covers: this one and those before it
	layout uint16 // layout that the counts belong to; 0: no quantile can be computed
	at     uint32 // where it begins in packed
}

// add adds a second.
func (p *PastBuckets) add(second, covers int64, layout uint16, b *Buckets) {
	if b.mixed {
		layout = 0
	}
	p.seconds = append(p.seconds, pastSecond{uint32(second), uint16(min(covers, math.MaxUint16)), layout, uint32(len(p.packed))})
	p.packed = binary.AppendVarint(binary.AppendUvarint(p.packed, b.Count), b.Sum)
	if layout == 0 {
		return
	}
	first, end := 0, len(b.counts)
	for first < end && b.counts[first] == 0 {
		first++
	}
	for first < end && b.counts[end-1] == 0 {
		end--
	}
	p.packed = binary.AppendUvarint(p.packed, uint64(first))
	for _, n := range b.counts[first:end] {
		p.packed = binary.AppendUvarint(p.packed, n)
	}
}

// shared returns p for others, which do not see what is added later.
func (p *PastBuckets) shared() PastBuckets {
	return PastBuckets{slices.Clip(p.seconds), slices.Clip(p.packed)}
}

// newest returns a copy of the newest n seconds, with room for as many as given.
func (p *PastBuckets) newest(n, room int) PastBuckets {
	seconds := p.seconds[len(p.seconds)-n:]
	from := seconds[0].at
	out := PastBuckets{append(make([]pastSecond, 0, room), seconds...), slices.Clone(p.packed[from:])}
	for i := range out.seconds {
		out.seconds[i].at -= from
	}
	return out
}

// unpack returns the count, the sum and the packed bucket counts of second i.
func (p *PastBuckets) unpack(i int) (count uint64, sum int64, counts []byte) {
	packed := p.packed[p.seconds[i].at:]
	if i+1 < len(p.seconds) {
		packed = p.packed[p.seconds[i].at:p.seconds[i+1].at]
	}
	count, n := binary.Uvarint(packed)
	sum, m := binary.Varint(packed[n:])
	return count, sum, packed[n+m:]
}

// bucketCounts returns the buckets in packed bucket counts, with their indices.
func bucketCounts(packed []byte) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		first, n := binary.Uvarint(packed)
		for i, rest := int(first), packed[n:]; len(rest) > 0; i++ {
			count, n := binary.Uvarint(rest)
			if !yield(i, count) {
				return
			}
			rest = rest[n:]
		}
	}
}

// addTo adds second i to b. bounds and layout are those of the histogram at present.
func (p *PastBuckets) addTo(b *Buckets, i int, bounds []int64, layout uint16) {
	count, sum, counts := p.unpack(i)
	if own := p.seconds[i].layout; own != layout || own == 0 { // other bounds
		b.merge(count, sum, nil, nil)
		return
	}
	b.merge(count, sum, bounds, nil)
	if b.mixed {
		return
	}
	for k, n := range bucketCounts(counts) {
		b.counts[k] = event.AddCount(b.counts[k], n)
	}
}

// takeFrom takes second i from b, to which it was added. It reports false if b has other bounds or may be too large to be
// exact: b is then of no use.
func (p *PastBuckets) takeFrom(b *Buckets, i int, layout uint16) bool {
	count, sum, counts := p.unpack(i)
	if b.mixed || p.seconds[i].layout != layout || b.Count == math.MaxUint64 || b.Sum == math.MaxInt64 {
		return false
	}
	b.own()
	b.Count, b.Sum = b.Count-count, b.Sum-sum
	for k, n := range bucketCounts(counts) {
		if b.counts[k] == math.MaxUint64 {
			return false
		}
		b.counts[k] -= n
	}
	return true
}
