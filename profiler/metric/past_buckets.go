package metric

import (
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// chunkSeconds is the number of seconds that pastBuckets keep and drop together.
const chunkSeconds = 16

// pastBuckets holds the Buckets of past seconds in some 40 bytes each. Copies share them: a second is never written again.
type pastBuckets struct {
	full []pastChunk // of chunkSeconds each, oldest first
	open pastChunk   // the newest seconds, fewer than chunkSeconds
}

// pastChunk holds some of the seconds.
type pastChunk struct {
	seconds []pastSecond // oldest first
	packed  []byte       // of each second, see Buckets.pack
}

type pastSecond struct {
	second uint32
	covers uint16 // seconds that it covers: this one and those before it
	layout uint16 // layout that the counts belong to; 0: no quantile can be computed
	at     uint32 // where it begins in packed
}

// len returns the number of seconds.
func (p *pastBuckets) len() int { return chunkSeconds*len(p.full) + len(p.open.seconds) }

// find returns the chunk of second i, and the second's index in it.
func (p *pastBuckets) find(i int) (*pastChunk, int) {
	if k := i / chunkSeconds; k < len(p.full) {
		return &p.full[k], i % chunkSeconds
	}
	return &p.open, i % chunkSeconds
}

// second returns the number of second i.
func (p *pastBuckets) second(i int) int64 {
	c, i := p.find(i)
	return int64(c.seconds[i].second)
}

// add adds a second.
func (p *pastBuckets) add(second, covers int64, layout uint16, b *Buckets) {
	if b.mixed {
		layout = 0
	}
	c := &p.open
	c.seconds = append(c.seconds, pastSecond{uint32(second), uint16(min(covers, math.MaxUint16)), layout, uint32(len(c.packed))})
	c.packed = b.pack(c.packed)
	if n := len(c.packed); len(c.seconds) == chunkSeconds {
		p.full = append(slices.Clip(p.full), *c)
		p.open = pastChunk{make([]pastSecond, 0, chunkSeconds), make([]byte, 0, n+n/8)} // the next one is as large
	}
}

// shared returns p for others, which do not see what is added later.
func (p *pastBuckets) shared() pastBuckets {
	return pastBuckets{slices.Clip(p.full), pastChunk{slices.Clip(p.open.seconds), slices.Clip(p.open.packed)}}
}

// drop drops the oldest seconds beyond the newest n, chunk by chunk, and returns how many.
func (p *pastBuckets) drop(n int) int {
	chunks := min(max(p.len()-n, 0)/chunkSeconds, len(p.full))
	if chunks > 0 {
		p.full = slices.Clone(p.full[chunks:])
	}
	return chunks * chunkSeconds
}

// packed returns the number of the layout of second i, and its Buckets.
func (p *pastBuckets) packed(i int) (layout uint16, packed []byte) {
	c, i := p.find(i)
	packed = c.packed[c.seconds[i].at:]
	if i+1 < len(c.seconds) {
		packed = c.packed[c.seconds[i].at:c.seconds[i+1].at]
	}
	return c.seconds[i].layout, packed
}

// pack appends b as varints: count, sum, index of the first used bucket, counts up to the last used one. Without
// quantiles the sum is the last number.
func (b *Buckets) pack(dst []byte) []byte {
	dst = binary.AppendVarint(binary.AppendUvarint(dst, b.Count), b.Sum)
	if b.mixed {
		return dst
	}
	first, end := 0, len(b.counts)
	for first < end && b.counts[first] == 0 {
		first++
	}
	for first < end && b.counts[end-1] == 0 {
		end--
	}
	dst = binary.AppendUvarint(dst, uint64(first))
	for _, n := range b.counts[first:end] {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// unpackBuckets returns the count, the sum and the packed bucket counts, none without quantiles, of packed Buckets.
func unpackBuckets(packed []byte) (count uint64, sum int64, counts []byte) {
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
func (p *pastBuckets) addTo(b *Buckets, i int, bounds []int64, layout uint16) {
	own, packed := p.packed(i)
	if own != layout { // other bounds
		bounds = nil
	}
	b.addPacked(packed, bounds)
}

// addPacked adds packed Buckets with the given bounds; nil: the bounds are others, or unknown.
func (b *Buckets) addPacked(packed []byte, bounds []int64) {
	count, sum, counts := unpackBuckets(packed)
	if len(counts) == 0 {
		bounds = nil
	}
	b.merge(count, sum, bounds, nil)
	if b.mixed || count == 0 {
		return
	}
	for k, n := range bucketCounts(counts) {
		b.counts[k] = event.AddCount(b.counts[k], n)
	}
}

// takeFrom takes second i from b, to which it was added. It reports false if b has other bounds or may be too large to be
// exact: b is then of no use.
func (p *pastBuckets) takeFrom(b *Buckets, i int, layout uint16) bool {
	own, packed := p.packed(i)
	count, sum, counts := unpackBuckets(packed)
	if b.mixed || own != layout || b.Count == math.MaxUint64 || b.Sum == math.MaxInt64 {
		return false
	}
	b.Count, b.Sum = b.Count-count, b.Sum-sum
	for k, n := range bucketCounts(counts) {
		if b.counts[k] == math.MaxUint64 {
			return false
		}
		b.counts[k] -= n
	}
	return true
}
