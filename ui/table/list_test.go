package table

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// many returns a snapshot of n requests, the oldest of them in its past, of every state and some without values.
func many(n int) *store.Snapshot {
	s := &store.Snapshot{Now: event.Time(n+10) * 1e9}
	var all []*store.Request
	for i := range n {
		r := &store.Request{
			ID: event.RequestID(i + 1), Enqueued: event.Time(i+1) * 1e9, State: event.StateQueued + event.State(i%5),
			Group: fmt.Sprintf("g%d", i%3), PromptTokens: i % 97, Generated: i % 31, Cold: i == 0, Targets: store.Targets{TTFT: 5e8}, HitTarget: i%7 < 5,
			ITL: metric.Summary{Count: uint64(i % 2), P99: int64(i % 13)},
		}
		if i%4 > 0 {
			r.TTFT, r.DecodeRate = event.DerivedValue(float64(i%101)/100), event.DerivedValue(float64(i%11))
		}
		all = append(all, r)
	}
	kept := min(n, store.MaxRequests)
	s.Earlier = all[:n-kept]
	s.Requests = slices.Clone(all[n-kept:])
	slices.Reverse(s.Requests)
	return s
}

func ids(l *Requests) (out []event.RequestID) {
	for _, r := range l.Rows {
		out = append(out, r.ID)
	}
	return out
}

func TestNewestComeFirst(t *testing.T) {
	l := NewRequests()
	l.Update(many(1000))
	if len(l.Rows) != 1000 || l.All != 1000 || l.Rows[0].ID != 1000 || l.Rows[999].ID != 1 {
		t.Fatalf("%d rows of %d, %v…", len(l.Rows), l.All, ids(l)[:3])
	}
	l.SortBy(Age)
	l.Update(many(1000))
	if l.Rows[0].ID != 1 {
		t.Errorf("in reverse order, %v comes first", l.Rows[0].ID)
	}
}

// TestOrder sorts by every field in both directions: absent values come last, and on a tie the newest comes first.
func TestOrder(t *testing.T) {
	s := many(600)
	for f := range NumFields {
		l := NewRequests()
		if f != Age {
			l.SortBy(f)
		}
		for range 2 {
			l.Update(s)
			for i := range l.Rows[1:] {
				a, b := l.Rows[i], l.Rows[i+1]
				c, present := 0, true
				if f.Unit() == metric.Word {
					c, present = natural(f.Text(a), f.Text(b)), f.Text(b) != ""
				} else {
					va, vb := f.Value(a, s.Now), f.Value(b, s.Now)
					c, present = cmp.Compare(va.V, vb.V), vb.OK()
					if !va.OK() && vb.OK() {
						t.Fatalf("%v: #%d, which has no value, comes before #%d", f, a.ID, b.ID)
					}
				}
				if l.Down {
					c = -c
				}
				if present && (c > 0 || c == 0 && a.Enqueued < b.Enqueued) {
					t.Fatalf("%v, down %v: #%d comes before #%d", f, l.Down, a.ID, b.ID)
				}
			}
			l.SortBy(f)
		}
	}
}

// Requests wait in a queue as soon as the engine reports one, whatever those before it did.
func TestSumsOfQueued(t *testing.T) {
	s := store.Empty()
	s.Requests = []*store.Request{{ID: 2, State: event.StateQueued}, {ID: 1, State: event.StateFinished, AnyQueue: true}}
	l := NewRequests()
	if l.Update(s); l.Sums.AnyQueue || l.Sums.States[event.StateQueued] != 1 {
		t.Errorf("%+v", l.Sums)
	}
}

func TestFilteredRowsAndTheirSums(t *testing.T) {
	s := many(900)
	l := NewRequests()
	l.Filter, _ = RequestFilters.Parse("group=g1 finished")
	l.Update(s)
	want := Sums{}
	n := 0
	for _, r := range append(slices.Clone(s.Earlier), s.Requests...) {
		if r.Group == "g1" && r.State == event.StateFinished {
			n++
			want.Generated += r.Generated
			want.Prompt += r.PromptTokens
			if Missed(r, s.Now) {
				want.Missed++
			}
		}
	}
	if len(l.Rows) != n || l.All != 900 || l.Sums.States[event.StateFinished] != n || l.Sums.States[event.StateFailed] != 0 {
		t.Errorf("%d rows, states %v; want %d", len(l.Rows), l.Sums.States, n)
	}
	if l.Sums.Generated != want.Generated || l.Sums.Prompt != want.Prompt || l.Sums.Missed != want.Missed || want.Missed == 0 {
		t.Errorf("sums %+v, want %+v", l.Sums, want)
	}
	if !math.IsNaN(l.Sums.P50[E2EL]) || math.IsNaN(l.Sums.P50[TTFT]) {
		t.Errorf("p50 of E2EL %v and TTFT %v", l.Sums.P50[E2EL], l.Sums.P50[TTFT])
	}
}

// Quantiles match those of the sorted values, by nearest rank.
func TestQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 50), 1, 300).Draw(t, "values")
		l := NewRequests()
		for i, v := range values {
			l.Rows = append(l.Rows, &store.Request{ID: event.RequestID(i), TTFT: event.DerivedValue(v)})
		}
		l.Rows = append(l.Rows, &store.Request{Cold: true, TTFT: event.DerivedValue(1e9)}, &store.Request{})
		p50, p99 := l.quantiles(TTFT, 0)
		slices.Sort(values)
		if w50, w99 := values[(len(values)*50+99)/100-1], values[(len(values)*99+99)/100-1]; p50 != w50 || p99 != w99 {
			t.Fatalf("p50 %v, p99 %v of %v; want %v, %v", p50, p99, values, w50, w99)
		}
	})
}

func TestRowsAreFound(t *testing.T) {
	s := many(300)
	l := NewRequests()
	l.Update(s)
	for i, r := range l.Rows {
		if l.Index(KeyOf(r)) != i {
			t.Fatalf("#%d is not found", r.ID)
		}
	}
	if l.Index(Key{ID: 4, Enqueued: 1}) != -1 || l.Index(Key{}) != -1 {
		t.Error("a request that is not there is found")
	}
}

// An update without changes keeps the rows, and repeated updates do not allocate.
func TestUpdatesReuseWhatTheyHave(t *testing.T) {
	a, b := many(2000), many(2000)
	l := NewRequests()
	l.SortBy(TTFT)
	l.Update(a)
	l.Update(b)
	if n := testing.AllocsPerRun(20, func() {
		l.Update(a)
		l.Update(b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkUpdate sorts, filters and sums up 5,000 requests.
func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		name   string
		by     Field
		filter string
	}{{"newest", Age, ""}, {"ttft", TTFT, ""}, {"filtered", TTFT, "ttft>100ms group=g1 -failed"}} {
		b.Run(c.name, func(b *testing.B) {
			s, t := many(5000), many(5000)
			l := NewRequests()
			if c.by != Age {
				l.SortBy(c.by)
			}
			l.Filter, _ = RequestFilters.Parse(c.filter)
			b.ReportAllocs()
			for b.Loop() {
				s, t = t, s
				l.Update(s)
			}
		})
	}
}

// Probes are rows but are excluded from the totals.
func TestTotalsExcludeProbes(t *testing.T) {
	s := many(40)
	for _, r := range s.Requests[:20] {
		r.Probe = true
	}
	l, without := NewRequests(), NewRequests()
	l.Update(s)
	without.Update(&store.Snapshot{Now: s.Now, Requests: s.Requests[20:]})
	if len(l.Rows) != 40 || l.Sums.Counted != 20 || fmt.Sprint(l.Sums) != fmt.Sprint(without.Sums) {
		t.Errorf("%d rows, the sums are\n%+v, without probes\n%+v", len(l.Rows), l.Sums, without.Sums)
	}
}
