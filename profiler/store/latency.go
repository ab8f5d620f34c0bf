package store

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// latency holds the session's latency data.
type latency struct {
	of              [NumLatencies]metric.Windowed
	stallCount, met metric.Windowed // stalls; requests that met every target
	stalls          []Stall
	series          []LatencyPoint // one point per second
	spread          *Spread        // gaps of spreadSecond, which is not closed; nil: none
	spreadSecond    int64
	judged          bool // a finished request was checked against the targets
}

// record records the latencies of a request that are due at a moment.
func (l *latency) record(r *Request, moment Moment, at event.Time) {
	for id := range Latencies {
		if row := &Latencies[id]; row.Moment == moment && row.Of != nil {
			if v := row.Of(r); v.OK() {
				l.of[id].Record(int64(at), nanos(v), 1)
			}
		}
	}
}

// recordFirst records the latencies of a request at its first token, at the time when they are known, and when it counts
// in them.
func (l *latency) recordFirst(r *Request, at event.Time) {
	l.record(r, AtFirstToken, at)
	r.Counted = max(at, event.Time(l.of[TTFT].Second()*int64(second)))
}

// recordGaps records k gaps of equal length that ended at the given time.
func (l *latency) recordGaps(at event.Time, gap int64, k int) {
	l.of[ITL].Record(int64(at), gap, uint32(k))
	l.advance(at)
	if l.spread == nil {
		l.spread = new(Spread)
	}
	l.spread[spreadBucket(gap)] += uint32(k)
}

// advance begins the second of now, unless a later one has begun: times that run backwards count in the current second.
// The seconds before it are closed.
func (l *latency) advance(now event.Time) {
	if sec := secondOf(now); sec > l.spreadSecond {
		l.spread, l.spreadSecond = nil, sec
	}
}

func (l *latency) recordStall(st Stall) {
	l.stalls = push(l.stalls, st, MaxStalls)
	l.stallCount.Record(int64(st.At), int64(st.Gap), 1)
}

// recordEnd records a request that has ended.
func (l *latency) recordEnd(r *Request) {
	if r.First == 0 {
		l.record(r, AtFirstToken, r.Closed)
	}
	if r.State != event.StateFinished || r.Polled { // polls measure only the long ones: their distribution would be biased
		return
	}
	l.record(r, AtEnd, r.Closed)
	l.judged = true
	if r.met() {
		l.met.Record(int64(r.Closed), 1, 1)
	}
}

// closeSecond appends the point of an ended second to the series.
func (l *latency) closeSecond(sec int64, r *RatePoint) {
	p := LatencyPoint{At: r.At, Running: r.Running, KVUsed: r.KVUsed}
	if sum := l.of[ITL].At(sec); sum.Count > 0 {
		p.Count, p.P50, p.P99 = sum.Count, sum.P50, sum.P99
		if sec == l.spreadSecond {
			p.Spread = l.spread
		}
		p.Stalls = int(l.stallCount.At(sec).Count)
	}
	if p.Count > 0 || len(l.series) > 0 { // no series for engines that report no tokens
		l.series = push(l.series, p, SeriesLen)
	}
}

// view sets the latency of a snapshot. span is the length of the session.
func (l *latency) view(v *Latency, now int64, span time.Duration) {
	v.Of = &noLatencies
	for id := range Latencies {
		sums := l.of[id].Summaries(now)
		if sums[metric.Session].Count == 0 {
			continue
		}
		if v.Of == &noLatencies {
			v.Of = new(LatencySummaries)
		}
		v.Of[id] = sums
	}
	v.Session.TTFT, v.Session.ITL, v.Session.TPOT = l.of[TTFT].Whole(), l.of[ITL].Whole(), l.of[TPOT].Whole()
	for w, sum := range l.stallCount.Summaries(now) {
		v.StallCount[w] = sum.Count
	}
	v.Series, v.Stalls = slices.Clip(l.series), slices.Clip(l.stalls)
	v.Goodput = event.Absent(event.NotYet)
	if l.judged && span > 0 {
		v.Goodput = event.DerivedValue(float64(l.met.Summaries(now)[metric.Minute].Count) / min(span, time.Minute).Seconds())
	}
}
