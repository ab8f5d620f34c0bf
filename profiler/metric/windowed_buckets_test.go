package metric

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
)

// counted returns a histogram that was reported every second, with new bounds halfway if changes is set.
func counted(seconds int, changes bool) (*WindowedBuckets, int64) {
	rng := rand.New(rand.NewPCG(3, uint64(seconds)))
	w := new(WindowedBuckets)
	bounds := []int64{1e6, 5e6, 25e6, 100e6}
	now := int64(time.Hour)
	for i := range seconds {
		now += int64(time.Second)
		if changes && i == seconds/2 {
			bounds = []int64{2e6, 4e6}
		}
		t := event.Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
		for k := range t.Counts {
			t.Counts[k] = uint64(rng.IntN(300))
			t.Count += t.Counts[k]
		}
		t.Sum = int64(t.Count) * 7e6
		w.Add(now, int64(time.Second), &t)
		if i%7 == 0 {
			w.Add(now, int64(time.Second), &event.Histogram{Count: 1, Sum: 5e6}) // without buckets
		}
	}
	return w, now
}

// A restored histogram equals the encoded one and continues like it.
func TestRestoredBucketsAreEqual(t *testing.T) {
	for _, seconds := range []int{0, 1, 30, 200} {
		for _, changes := range []bool{false, true} {
			w, now := counted(seconds, changes)
			var bounds [][]int64
			b := w.Append([]byte("before"), &bounds)
			again, past := new(WindowedBuckets), w.Past()
			if rest := again.Restore(append(b, "after"...)[len("before"):], bounds, past); string(rest) != "after" {
				t.Fatalf("%d s: %q follows", seconds, rest)
			}
			for range 70 {
				if d := cmp.Diff(summaries(w, now), summaries(again, now)); d != "" {
					t.Fatalf("%d s, changes %t (-was +is):\n%s", seconds, changes, d)
				}
				v, restored := w.View(now), again.View(now)
				wasBounds, was := v.Session()
				isBounds, is := restored.Session()
				if d := cmp.Diff(was, is) + cmp.Diff(wasBounds, isBounds); d != "" {
					t.Fatalf("%d s, changes %t, of the session (-was +is):\n%s", seconds, changes, d)
				}
				now += int64(time.Second)
				more := event.Histogram{Count: 3, Sum: 3e6, Bounds: []int64{1e6, 5e6, 25e6, 100e6}, Counts: []uint64{1, 2, 0, 0, 0}}
				w.Add(now, int64(time.Second), &more)
				again.Add(now, int64(time.Second), &more)
			}
		}
	}
}

func FuzzKeptBuckets(f *testing.F) {
	var bounds [][]int64
	w, _ := counted(90, true)
	f.Add(w.Append(nil, &bounds))
	f.Add([]byte{0, 1, 2, 0, 1, 5})
	f.Add([]byte("=KuY9\x02\a\x80\xcf\xea0H\xb5B")) // more counts than its bounds have buckets
	f.Fuzz(func(t *testing.T, src []byte) {
		w := new(WindowedBuckets)
		if rest := w.Restore(src, bounds, PastBuckets{}); len(rest) > len(src) {
			t.Fatalf("%d bytes are left of %d", len(rest), len(src))
		}
	})
}
