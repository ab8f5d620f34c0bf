package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// latency holds the session's latency data.
type latency struct {
	*distributions
	stalls  []Stall
	series  []LatencyPoint // one point per second
	spreads spreads
}

// distributions are kept for every window.
type distributions struct {
	ttft, cold, itl, stil, e2el, tpot, stallCount metric.Windowed
	met                                           metric.Windowed // requests that met every target
}

// windows returns all distributions, always in the same order.
func (d *distributions) windows() [8]*metric.Windowed {
	return [...]*metric.Windowed{&d.ttft, &d.cold, &d.itl, &d.stil, &d.e2el, &d.tpot, &d.stallCount, &d.met}
}

// recordFirst records TTFT and queue time of a request at its first token.
func (l *latency) recordFirst(r *Request) {
	if r.TTFT.OK() {
		into := &l.ttft
		if r.Cold {
			into = &l.cold
		}
		into.Record(int64(r.First), nanos(r.TTFT), 1)
	}
	if r.STIL.OK() {
		l.stil.Record(int64(r.First), nanos(r.STIL), 1)
	}
}

// recordGaps records k gaps of equal length that ended at the given time.
func (l *latency) recordGaps(at event.Time, gap int64, k int) {
	l.itl.Record(int64(at), gap, uint32(k))
	l.spreads.record(at, gap, k)
}

func (l *latency) recordStall(st Stall) {
	l.stalls = push(l.stalls, st, MaxStalls)
	l.stallCount.Record(int64(st.At), int64(st.Gap), 1)
}

// recordEnd records a request that has ended.
func (l *latency) recordEnd(r *Request) {
	if r.State != event.StateFinished {
		return
	}
	at := int64(r.Closed)
	if r.E2EL.OK() {
		l.e2el.Record(at, nanos(r.E2EL), 1)
	}
	if r.TPOT.OK() {
		l.tpot.Record(at, nanos(r.TPOT), 1)
	}
	if r.met() {
		l.met.Record(at, 1, 1)
	}
}

// closeSecond appends the point of an ended second to the series.
func (l *latency) closeSecond(sec int64) {
	p := LatencyPoint{At: event.Time(sec * int64(second))}
	if sum := l.itl.At(sec); sum.Count > 0 {
		p.Count, p.P50, p.P99, p.Spread = sum.Count, sum.P50, sum.P99, l.spreads.take(sec)
	}
	if p.Count > 0 || len(l.series) > 0 { // no series for engines that report no tokens
		l.series = push(l.series, p, SeriesLen)
	}
}

// view sets the latency of a snapshot. span is the length of the session, 0 if no request has finished.
func (l *latency) view(v *Latency, now int64, span time.Duration) {
	v.TTFT, v.ColdTTFT = l.ttft.Summaries(now), l.cold.Summaries(now)
	v.ITL, v.STIL = l.itl.Summaries(now), l.stil.Summaries(now)
	v.E2EL, v.TPOT = l.e2el.Summaries(now), l.tpot.Summaries(now)
	v.Session = SessionDistributions{l.ttft.Whole(), l.itl.Whole(), l.tpot.Whole()}
	for w, sum := range l.stallCount.Summaries(now) {
		v.StallCount[w] = sum.Count
	}
	v.Series, v.Stalls = slices.Clip(l.series), slices.Clip(l.stalls)
	v.Goodput = event.Absent(event.NotYet)
	if span > 0 {
		v.Goodput = event.DerivedValue(float64(l.met.Summaries(now)[metric.Minute].Count) / min(span, time.Minute).Seconds())
	}
}

// frozenLatency is a compact copy of latency.
type frozenLatency struct {
	latency // without distributions
	packed  [8]*metric.PackedWindowed
}

// freeze returns a compact copy.
func (l *latency) freeze() (f frozenLatency) {
	f.latency = latency{stalls: slices.Clip(l.stalls), series: slices.Clip(l.series), spreads: l.spreads}
	f.spreads.copyOpen()
	for i, w := range l.windows() {
		f.packed[i] = w.Pack()
	}
	return f
}

// size returns the memory of the packed distributions, in bytes.
func (f *frozenLatency) size() (n int) {
	for _, w := range f.packed {
		n += w.Size()
	}
	return n
}

// thaw returns latency data that continues from the frozen one.
func (f *frozenLatency) thaw() latency {
	l := f.latency
	l.spreads.copyOpen()
	l.distributions = new(distributions)
	for i, w := range l.windows() {
		f.packed[i].UnpackTo(w)
	}
	return l
}
