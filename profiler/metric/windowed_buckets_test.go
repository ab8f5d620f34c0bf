package metric

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

// columnCounts returns the number of values in each of the newest columns up to a second.
func columnCounts(w *WindowedBuckets, n int, last int64) (out []uint64) {
	columns, t := make([]Buckets, n), w.View(0)
	t.Columns(columns, last)
	for i := range columns {
		out = append(out, columns[i].Count)
	}
	return out
}

// A report is shown in all seconds that it covers, also where polls come early or late.
func TestColumnsCoverIntervals(t *testing.T) {
	const sec = int64(time.Second)
	var w WindowedBuckets
	report := func(at, interval float64, n uint64) {
		w.Add(int64(at*float64(sec)), int64(interval*float64(sec)), &event.Histogram{Count: n, Sum: int64(n), Bounds: []int64{5}, Counts: []uint64{n, 0}})
	}
	report(10.5, 1, 1)
	report(11.5, 1, 2)
	report(12.01, 0.51, 4) // the next one is late: none in second 13
	report(14.02, 2.01, 8)
	report(20.3, 5, 16) // a slower poll, after a second without requests
	if got, want := columnCounts(&w, 12, 21), []uint64{1, 2, 4, 8, 8, 0, 16, 16, 16, 16, 16, 0}; !slices.Equal(got, want) {
		t.Errorf("columns %v, want %v", got, want)
	}
	if got, want := columnCounts(&w, 3, 15), []uint64{8, 8, 0}; !slices.Equal(got, want) {
		t.Errorf("in the past %v, want %v", got, want)
	}
}

// Seconds with other bounds than the present ones have a mean, but no quantiles.
func TestColumnsOfChangedBounds(t *testing.T) {
	const sec = int64(time.Second)
	var w WindowedBuckets
	w.Add(sec, sec, &event.Histogram{Count: 2, Sum: 8, Bounds: []int64{5, 10}, Counts: []uint64{1, 1, 0}})
	w.Add(2*sec, sec, &event.Histogram{Count: 3, Sum: 21, Bounds: []int64{6, 9}, Counts: []uint64{1, 2, 0}})
	columns, view := make([]Buckets, 2), w.View(0)
	view.Columns(columns, 2)
	if b := &columns[0]; b.Count != 2 || b.Sum != 8 || b.Counts() != nil || b.Quantile(.5).Edge != NoQuantile {
		t.Errorf("before the change %+v", b)
	}
	if b := &columns[1]; b.Count != 3 || !slices.Equal(b.Counts(), []uint64{1, 2, 0}) || b.Quantile(.5).Edge != Within || !slices.Equal(view.Bounds(), []int64{6, 9}) {
		t.Errorf("after the change %+v", b)
	}
}

// A view does not change when values are added later, and keeps the newest seconds.
func TestViewIsImmutable(t *testing.T) {
	const sec = int64(time.Second)
	w, twin := WindowedBuckets{Keep: 100}, new(WindowedBuckets)
	for s := range int64(90) {
		for _, w := range []*WindowedBuckets{&w, twin} {
			w.Add(s*sec, sec, &event.Histogram{Count: 1, Sum: 3, Bounds: []int64{5}, Counts: []uint64{1, 0}})
		}
	}
	columns, before := make([]Buckets, 90), w.View(89*sec)
	for s := int64(90); s < 400; s++ {
		w.Add(s*sec, sec, &event.Histogram{Count: 2, Sum: 20, Bounds: []int64{5}, Counts: []uint64{0, 2}})
		w.View(s * sec)
	}
	for i, want := range summaries(twin, 89*sec) {
		if got := before.Summary(Window(i)); got != want {
			t.Errorf("window %d is %+v, want %+v", i, got, want)
		}
	}
	before.Columns(columns, 89)
	for s := range columns {
		if columns[s].Count != 1 {
			t.Fatalf("second %d has %d values", s, columns[s].Count)
		}
	}
	if got := columnCounts(&w, 100, 399); slices.Contains(got, 0) {
		t.Errorf("of the last 100 seconds: %v", got)
	}
}

// A histogram may have any number of buckets.
func TestViewOfManyBuckets(t *testing.T) {
	const sec, n = int64(time.Second), 40_000
	h := &event.Histogram{Count: n, Sum: n * n, Bounds: make([]int64, n-1), Counts: make([]uint64, n)}
	for i := range h.Counts {
		h.Counts[i] = 1
		if i > 0 {
			h.Bounds[i-1] = int64(i)
		}
	}
	var w WindowedBuckets
	w.Add(sec, sec, h)
	for window := range NumWindows {
		if got := w.View(sec).Summary(window); got.Count != n || got.P50.At != n/2 {
			t.Errorf("window %d: %d values, p50 %+v", window, got.Count, got.P50)
		}
	}
}

// Windows are what was reported in their seconds, without quantiles if not all of it had the present bounds.
func TestWindowsAreSumsOfReports(t *testing.T) {
	const sec = int64(time.Second)
	layouts := [][]int64{{5, 9, 20}, {5, 9, 20, 70}, nil}
	rapid.Check(t, func(r *rapid.T) {
		type report struct {
			second int64
			event.Histogram
		}
		var w WindowedBuckets
		var reports []report
		now, layout := int64(0), 0
		for range rapid.IntRange(1, 150).Draw(r, "reports") {
			now += rapid.SampledFrom([]int64{0, 1, 1, 1, 2, 30}).Draw(r, "later")
			if rapid.IntRange(0, 40).Draw(r, "change") == 0 {
				layout = rapid.IntRange(0, 2).Draw(r, "layout")
			}
			h := event.Histogram{Bounds: layouts[layout], Counts: make([]uint64, len(layouts[layout])+1), Sum: rapid.Int64Range(0, 100).Draw(r, "sum")}
			for i := range h.Counts {
				h.Counts[i] = rapid.Uint64Range(0, 3).Draw(r, "n")
				h.Count += h.Counts[i]
			}
			if w.Add(now*sec, sec, &h); h.Count > 0 {
				reports = append(reports, report{now, h})
			}
			if len(reports) == 0 {
				continue
			}
			end := now + rapid.Int64Range(0, 12).Draw(r, "wait")
			v := w.View(end * sec)
			end, now = max(end, now), max(end, now)
			for window, span := range map[Window]int64{TenSeconds: 10, Minute: 60, Session: 1 << 40} {
				var want Buckets
				for i := range reports {
					if reports[i].second > end-span {
						want.Add(&reports[i].Histogram)
					}
				}
				if got := v.Summary(window); got != want.Summary() {
					r.Fatalf("%v: %+v, want %+v", window, got, want.Summary())
				}
			}
		}
	})
}
