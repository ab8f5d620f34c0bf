package metric

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// WindowedBuckets keeps Buckets over every Window and second by second. The zero value is empty and keeps the seconds of
// the longest window.
type WindowedBuckets struct {
	Keep int // past seconds with values to keep, if more than the longest window needs

	second  int64 // number of the current second
	covers  int64 // seconds that the reports of the current second cover
	current Buckets
	past    pastBuckets
	session Buckets

	bounds []int64 // the last reported bounds
	layout uint16  // number of bounds, counted up with each change; 1 for the first ones

	end    int64 // number of the second in which the recent windows end
	recent [len(recentSpans)]recentBuckets
	view   *BucketsView // the last one; nil: values were added since
}

// recentSpans are the seconds of the windows that are sums of past seconds: TenSeconds and Minute.
var recentSpans = [...]int64{10, 60}

// recentBuckets is the sum of the past seconds in a window, and of the current second, wherever the window ends.
type recentBuckets struct {
	Buckets
	from int // the first of the past seconds
}

// Add adds a histogram reported at a time in ns for the interval in ns before it. Times before the current second count in
// the current second.
func (w *WindowedBuckets) Add(now, interval int64, t *event.Histogram) {
	if t.Count == 0 {
		return
	}
	s := now / int64(time.Second)
	if s > w.second {
		w.closeSecond(s)
		w.second, w.covers = s, 1
	}
	w.covers = max(w.covers, s-(now-interval)/int64(time.Second))
	if len(t.Bounds) > 0 && len(t.Counts) == len(t.Bounds)+1 && !same(w.bounds, t.Bounds) {
		w.bounds = t.Bounds
		w.layout++
		w.sumRecent()
	}
	w.current.Add(t)
	w.session.Add(t)
	for i := range w.recent {
		w.recent[i].Add(t)
	}
	w.view = nil
}

// closeSecond moves the current second to the past ones; next is the next one with values.
func (w *WindowedBuckets) closeSecond(next int64) {
	if w.current.Count == 0 {
		return
	}
	w.past.add(w.second, w.covers, w.layout, &w.current)
	w.current.reset()
	w.advance(next)
	dropped := w.past.drop(max(w.Keep, slots))
	for i := range w.recent {
		w.recent[i].from -= dropped
	}
}

// advance makes the recent windows end in second s, unless they end later.
func (w *WindowedBuckets) advance(s int64) {
	w.end = max(w.end, s)
	for i := range w.recent {
		r, exact := &w.recent[i], true
		for ; w.startsTooEarly(i); r.from++ {
			exact = exact && w.past.takeFrom(&r.Buckets, r.from, w.layout)
		}
		if !exact {
			w.sum(i)
		}
	}
}

// startsTooEarly reports whether the first second that a recent window sums has left it.
func (w *WindowedBuckets) startsTooEarly(i int) bool {
	from := w.recent[i].from
	return from < w.past.len() && w.end-w.past.second(from) >= recentSpans[i]
}

// sumRecent sums the recent windows again.
func (w *WindowedBuckets) sumRecent() {
	for i := range w.recent {
		w.sum(i)
	}
}

func (w *WindowedBuckets) sum(i int) {
	r := &w.recent[i]
	r.reset()
	for w.startsTooEarly(i) {
		r.from++
	}
	for k := r.from; k < w.past.len(); k++ {
		w.past.addTo(&r.Buckets, k, w.bounds, w.layout)
	}
	w.current.addTo(&r.Buckets)
}

// View returns the histogram over every window ending now, or where the windows ended last if that is later.
func (w *WindowedBuckets) View(now int64) *BucketsView {
	w.advance(now / int64(time.Second))
	if w.view == nil || w.view.end != w.end {
		w.view = newBucketsView(w)
	}
	return w.view
}
