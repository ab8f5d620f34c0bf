package metric

import "slices"

// BucketsView is a histogram of an engine at a moment: over every Window, and second by second. It is immutable.
type BucketsView struct {
	end       int64 // number of the second in which the windows end
	summaries [NumWindows]BucketSummary
	session   Buckets
	past      PastBuckets
	current   PastBuckets // the current second, or nothing
	bounds    []int64
	layout    uint16
}

// Summary describes the durations over a window. It must not be changed.
func (v *BucketsView) Summary(w Window) *BucketSummary { return &v.summaries[w] }

// Session returns the histogram of the whole session: the upper bounds of its buckets in ns, and the counts, which are
// one more. Both are nil if the bounds are unknown or changed. They must not be changed.
func (v *BucketsView) Session() (bounds []int64, counts []uint64) {
	if counts = v.session.Counts(); counts == nil {
		return nil, nil
	}
	return v.session.bounds, counts
}

// Bounds returns the upper bounds in ns of all buckets but the last; nil if they are unknown. They must not be changed.
func (v *BucketsView) Bounds() []int64 { return v.bounds }

// Columns sets each of the columns, one per second up to the second last, to the values of the report that covers it: an
// empty one where none does.
func (v *BucketsView) Columns(columns []Buckets, last int64) {
	for i := range columns {
		columns[i].reset()
	}
	for _, p := range [...]*PastBuckets{&v.current, &v.past} {
		for k, s := range slices.Backward(p.seconds) {
			newest := int64(s.second) - last + int64(len(columns)) - 1
			for i := min(newest, int64(len(columns))-1); i > newest-int64(s.covers) && i >= 0; i-- {
				if columns[i].Count == 0 {
					p.addTo(&columns[i], k, v.bounds, v.layout)
				}
			}
			if newest < 0 {
				return
			}
		}
	}
}
