package exposition

import (
	"math"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// The histograms of latencies.
var (
	ttft, itl  = latencyMetrics[store.TTFT], latencyMetrics[store.ITL]
	tpot, e2el = latencyMetrics[store.TPOT], latencyMetrics[store.E2EL]
	queue      = latencyMetrics[store.STIL]
)

// family returns the exported family of an instrument.
func family(t rapid.TB, x *Exporter, i *instrument) *dto.MetricFamily {
	t.Helper()
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == i.promName {
			return f
		}
	}
	return &dto.MetricFamily{}
}

// sums returns the count and the sum of a histogram over all its series. Its buckets must add up to the count.
func sums(t rapid.TB, x *Exporter, i *instrument) (n uint64, sum float64) {
	t.Helper()
	for _, m := range family(t, x, i).Metric {
		h := m.Histogram
		n, sum = n+h.GetSampleCount(), sum+h.GetSampleSum()
		if last := h.Bucket[len(h.Bucket)-1]; last.GetCumulativeCount() > h.GetSampleCount() {
			t.Fatalf("%s: %d in the buckets of %d", i.name, last.GetCumulativeCount(), h.GetSampleCount())
		}
	}
	return n, sum
}

// TestHistogramsAgreeWithTheStore checks that exported counts and sums equal those of the store, for any events and any
// times of scraping. Events about the time before a first token are emitted before that token, since the store counts
// at the token.
func TestHistogramsAgreeWithTheStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New("test")
		p := addEngine(x, "native")
		p.introduce("native", "tiny")
		begun := make(map[event.RequestID]bool) // generating
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			id := event.RequestID(rapid.IntRange(0, 5).Draw(t, "request"))
			p.now += event.Time(rapid.Int64Range(0, 20*ms).Draw(t, "wait"))
			e := event.Event{Req: id, At: p.now + event.Time(rapid.SampledFrom([]int64{0, 0, 0, -5 * ms, 3600 * sec}).Draw(t, "off"))}
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0, 1:
				e.Kind, e.N = event.KindToken, rapid.SampledFrom([]int32{1, 1, 3, -1, 1 << 20}).Draw(t, "n")
				begun[id] = true
			case 2:
				e.Kind, e.State = event.KindRequest, event.StateQueued
				e.Data = &event.Request{Cold: rapid.Bool().Draw(t, "cold")}
			case 3:
				e.Kind, e.State = event.KindRequest, event.State(rapid.IntRange(0, int(event.NumStates)).Draw(t, "state"))
				if begun[id] && !e.State.Final() {
					continue
				}
				e.Data = &event.Outcome{Prompt: 3, Generated: 2}
			case 4:
				e.Kind, e.Layer, e.Dur = event.KindStage, -1, rapid.Int64Range(-ms, 9*ms).Draw(t, "took")
				e.Stage = rapid.SampledFrom([]event.Stage{event.StagePace, event.StagePrompt, event.StageLoad}).Draw(t, "stage")
				if begun[id] {
					e.Stage = event.StagePace
				}
			case 5:
				if _, err := x.Gather(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			p.sink.Emit(e)
			p.store.Snapshot() // the store takes in the event immediately, as under low load
		}
		agree(t, x, p)
	})
}

// agree compares the exported histograms with the distributions of the store.
func agree(t rapid.TB, x *Exporter, p *scenario) {
	t.Helper()
	l := &p.store.Snapshot().Latency
	for id := range store.NumLatencies {
		c := latencyMetrics[id]
		n, sum := sums(t, x, c)
		want := l.Of[id][metric.Session]
		if whole := want.Mean * float64(want.Count) / 1e9; n != want.Count || math.Abs(sum-whole) > 1e-7*math.Abs(whole)+1e-8 {
			t.Errorf("%s: %d that sum to %v s, the store has %d and %v s", c.name, n, sum, want.Count, whole)
		}
	}
}

// TestBucketsAreExact emits gaps exactly on bucket bounds and 1 ns to each side.
func TestBucketsAreExact(t *testing.T) {
	x := New("test")
	p := addEngine(x, "native")
	p.introduce("native", "tiny")
	p.state(0, 1, event.StateQueued, &event.Request{})
	p.token(0, 1, 1)
	want := make(map[float64]uint64)
	for _, bound := range store.TokenBounds {
		ns := int64(math.Round(bound * 1e9))
		for _, gap := range []int64{ns - 1, ns, ns + 1} {
			p.token(gap, 1, 1)
			for _, b := range store.TokenBounds {
				if gap <= int64(math.Round(b*1e9)) {
					want[b]++
				}
			}
		}
	}
	h := family(t, x, itl).Metric[0].Histogram
	for _, b := range h.Bucket {
		if b.GetCumulativeCount() != want[b.GetUpperBound()] {
			t.Errorf("up to %v s: %d, want %d", b.GetUpperBound(), b.GetCumulativeCount(), want[b.GetUpperBound()])
		}
	}
	if len(h.Bucket) != len(store.TokenBounds) || len(h.PositiveSpan) == 0 {
		t.Errorf("%d classic buckets and %d spans of native ones", len(h.Bucket), len(h.PositiveSpan))
	}
}

// TestRunningRequestsAreExported checks that a first token is counted once, when it arrives and not when its request
// ends.
func TestRunningRequestsAreExported(t *testing.T) {
	x := New("test")
	p := addEngine(x, "native")
	p.introduce("native", "tiny")
	p.state(0, 1, event.StateQueued, &event.Request{})
	p.state(ms, 1, event.StateDispatched, nil)
	for i, want := range []uint64{0, 1, 1, 1} {
		if n, _ := sums(t, x, ttft); n != want {
			t.Errorf("at moment %d: %d first tokens, want %d", i, n, want)
		}
		if i == 2 {
			p.state(ms, 1, event.StateFinished, &event.Outcome{Generated: 2})
		} else {
			p.token(ms, 1, 1)
		}
	}
	agree(t, x, p)
}

// TestGapsOfManyRequests checks that the gaps of all requests that the store measures are exported, and that ended ones
// make room for others.
func TestGapsOfManyRequests(t *testing.T) {
	x := New("test")
	p := addEngine(x, "native")
	const more = 10
	gaps := func(want uint64) {
		t.Helper()
		p.store.Drain()
		if n, _ := sums(t, x, itl); n != want || p.store.Snapshot().Latency.Of[store.ITL][metric.Session].Count != want {
			t.Errorf("%d gaps, %d in the store, want %d", n, p.store.Snapshot().Latency.Of[store.ITL][metric.Session].Count, want)
		}
	}
	each := func(do func(id event.RequestID)) {
		for id := range event.RequestID(store.MaxOpen + more) {
			if do(id + 1); id%1000 == 0 {
				p.store.Drain()
			}
		}
	}
	each(func(id event.RequestID) { p.state(0, id, event.StateQueued, &event.Request{}) })
	each(func(id event.RequestID) { p.token(0, id, 1) })
	each(func(id event.RequestID) { p.token(ms, id, 1) })
	gaps(store.MaxOpen)
	each(func(id event.RequestID) { p.state(0, id, event.StateFinished, nil) })
	p.state(0, 99_999, event.StateQueued, &event.Request{})
	p.token(0, 99_999, 1)
	p.token(ms, 99_999, 1)
	gaps(store.MaxOpen + 1)
}

// TestTokensThatShareAStamp checks that tokens of one timestamp divide the gap.
func TestTokensThatShareAStamp(t *testing.T) {
	x := New("test")
	p := addEngine(x, "native")
	p.state(0, 1, event.StateQueued, &event.Request{})
	p.token(ms, 1, 1)
	p.token(8*ms, 1, 4)
	if n, sum := sums(t, x, itl); n != 4 || math.Abs(sum-.008) > 1e-12 {
		t.Errorf("%d gaps that sum to %v s, want 4 and 8 ms", n, sum)
	}
	p.token(8*ms, 1, 1<<30)
	if n, _ := sums(t, x, itl); n != 4+store.MaxTokens {
		t.Errorf("%d gaps, want %d", n, 4+store.MaxTokens)
	}
}
