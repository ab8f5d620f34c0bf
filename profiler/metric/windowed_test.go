package metric

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const sec = int64(time.Second)

// sample is a value with its time.
type sample struct {
	at, v int64
	k     uint32
}

// within merges the values of the seconds first to last.
func within(all []sample, first, last int64) Summary {
	var h Histogram
	for _, s := range all {
		if at := s.at / sec; at >= first && at <= last {
			h.Record(s.v, s.k)
		}
	}
	return h.Summary()
}

// TestWindowsHoldTheirSamples checks every window against the samples of its seconds, merged one by one.
func TestWindowsHoldTheirSamples(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var w Windowed
		var all []sample
		now := rapid.Int64Range(0, 100*sec).Draw(rt, "start")
		for range rapid.IntRange(0, 60).Draw(rt, "samples") {
			now += rapid.OneOf(rapid.Int64Range(0, sec/2), rapid.Int64Range(0, 20*sec), rapid.Just(61*sec)).Draw(rt, "wait")
			s := sample{now, rapid.Int64Range(0, 1e10).Draw(rt, "v"), rapid.Uint32Range(1, 3).Draw(rt, "k")}
			w.Record(s.at, s.v, s.k)
			all = append(all, s)
			if rapid.Bool().Draw(rt, "look") {
				w.Summaries(now)
			}
		}
		now += rapid.Int64Range(0, 70*sec).Draw(rt, "later")
		got, this := w.Summaries(now), now/sec
		last := within(all, this-1, this-1)
		if got := w.At(this - 1); got != last {
			rt.Fatalf("the last whole second has %+v, want %+v", got, last)
		}
		if last.Count == 0 {
			last = within(all, this, this)
		}
		want := [NumWindows]Summary{
			Second: last, TenSeconds: within(all, this-9, this), Minute: within(all, this-59, this), Session: within(all, 0, this),
		}
		for i := range got {
			// Additions happen in another order, so the last bits of sums differ.
			if !near(got[i].Mean, want[i].Mean) || !near(got[i].StdDev, want[i].StdDev) {
				rt.Fatalf("%v: %+v, want %+v", Window(i), got[i], want[i])
			}
			if got[i].Mean, got[i].StdDev = want[i].Mean, want[i].StdDev; got[i] != want[i] {
				rt.Fatalf("%v: %+v, want %+v", Window(i), got[i], want[i])
			}
		}
	})
}

// near reports whether a and b are equal up to the rounding of sums of squares of 10 s in ns: some µs.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*(a+b)+1e4 }

func TestBackwardTimesCountNow(t *testing.T) {
	var w Windowed
	w.Record(100*sec, 10, 1)
	w.Record(30*sec, 20, 1)
	if got := w.Summaries(100 * sec)[TenSeconds]; got.Count != 2 || got.Max != 20 {
		t.Errorf("the last 10 s hold %+v, want both values", got)
	}
}

func TestWindowNames(t *testing.T) {
	for w, want := range map[Window]string{Second: "last 1 s", TenSeconds: "last 10 s", Minute: "last 1 min", Session: "session"} {
		if w.String() != want {
			t.Errorf("%v, want %s", w, want)
		}
	}
	if TenSeconds.Span() != 10*time.Second || Session.Span() != 0 {
		t.Errorf("spans %v and %v, want 10 s and none", TenSeconds.Span(), Session.Span())
	}
	if Decode.String() != "decode" || Prompt.String() != "prompt" || Both.String() != "prompt + decode" {
		t.Errorf("phases %v, %v, %v", Decode, Prompt, Both)
	}
}

func BenchmarkWindowedRecord(b *testing.B) {
	var w Windowed
	now := int64(0)
	for b.Loop() {
		w.Record(now, 620_000, 1)
		now += 620_000
	}
}

func BenchmarkWindowedSummaries(b *testing.B) {
	var w Windowed
	for i := range int64(100_000) {
		w.Record(i*620_000, 620_000+i%1000, 1)
	}
	for b.Loop() {
		w.Summaries(62 * sec)
	}
}
