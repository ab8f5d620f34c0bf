package metric

import "slices"

// BucketTrend holds what a histogram of an engine counted, second by second. It is immutable.
type BucketTrend struct {
	past    []SecondBuckets // oldest first
	current *SecondBuckets  // nil: empty
	bounds  []int64
	layout  uint16
}

// Bounds returns the upper bounds in ns of all buckets but the last; nil if they are unknown. They must not be changed.
func (t *BucketTrend) Bounds() []int64 { return t.bounds }

// Columns sets each of the columns, one per second up to the second last, to the values of the report that covers it: an
// empty one where none does.
func (t *BucketTrend) Columns(columns []Buckets, last int64) {
	for i := range columns {
		columns[i].reset()
	}
	set := func(p *SecondBuckets) (older bool) {
		newest := int64(p.second) - last + int64(len(columns)) - 1
		for i := min(newest, int64(len(columns))-1); i > newest-int64(p.covers) && i >= 0; i-- {
			if columns[i].Count == 0 {
				p.addTo(&columns[i], t.bounds, t.layout)
			}
		}
		return newest < 0
	}
	if t.current != nil {
		set(t.current)
	}
	for i := range slices.Backward(t.past) {
		if set(&t.past[i]) {
			return
		}
	}
}

// Counts returns the counts per bucket, one more than the bounds; nil without values or with unknown bounds. They must
// not be changed.
func (b *Buckets) Counts() []uint64 {
	if b.Count == 0 || b.mixed {
		return nil
	}
	return b.counts
}
