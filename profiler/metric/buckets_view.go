package metric

import "slices"

// BucketsView is a histogram of an engine at a moment: over every Window, and second by second. It is immutable.
type BucketsView struct {
	end, second, covers int64 // as in WindowedBuckets
	current, session    Buckets
	recent              [len(recentSpans)]Buckets
	past                PastBuckets
	bounds              []int64
	layout              uint16
}

// Summary describes the durations over a window.
func (v *BucketsView) Summary(w Window) BucketSummary {
	sum := v.sum(w)
	return sum.Summary()
}

// sum returns the durations over a window. "last 1 s" is the latest report, from the current second or the one before.
func (v *BucketsView) sum(w Window) (sum Buckets) {
	age := v.end - v.second // of the current second
	newest := len(v.past.seconds) - 1
	switch recent := int(w - TenSeconds); {
	case w == Session:
		return v.session
	case w == Second && age < 2 && v.current.Count > 0:
		return v.current
	case w == Second && newest >= 0 && v.end-int64(v.past.seconds[newest].second) == 1:
		v.past.addTo(&sum, newest, v.bounds, v.layout)
	case w == Second:
	case v.current.Count == 0 || age >= recentSpans[recent]:
		return v.recent[recent]
	default:
		v.recent[recent].addTo(&sum)
		v.current.addTo(&sum)
	}
	return sum
}

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
	var current PastBuckets
	if v.current.Count > 0 {
		current.add(v.second, v.covers, v.layout, &v.current)
	}
	for _, p := range [...]*PastBuckets{&current, &v.past} {
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
