package store

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// trendChunk is the number of points that a Trend packs together.
const trendChunk = 16

// Trend holds the throughput of at most SeriesLen past seconds, one point per second, in some 30 bytes each: hundreds of
// engines have one. It is immutable, and copies share points.
type Trend struct {
	full [][]byte    // trendChunk points each, packed, oldest first
	open []RatePoint // the newest points, at most trendChunk; not empty unless full is
}

// Len returns the number of points.
func (t Trend) Len() int { return trendChunk*len(t.full) + len(t.open) }

// Last returns the newest point; nil without points. Callers only read it.
func (t Trend) Last() *RatePoint {
	if n := len(t.open); n > 0 {
		return &t.open[n-1]
	}
	return nil
}

// Points appends all points, oldest first, to dst.
func (t Trend) Points(dst []RatePoint) []RatePoint {
	dst = slices.Grow(dst, t.Len())
	for _, chunk := range t.full {
		dst = unpackPoints(dst, chunk)
	}
	return append(dst, t.open...)
}

// with returns t with another point, whose rates and shares are rounded to float32.
func (t Trend) with(p RatePoint) Trend {
	if len(t.open) == trendChunk {
		t.full = append(slices.Clip(t.full[max(len(t.full)+2-SeriesLen/trendChunk, 0):]), packPoints(t.open))
		t.open = nil
	}
	if t.open == nil {
		t.open = make([]RatePoint, 0, trendChunk)
	}
	t.open = append(t.open, pointOf(p.words()))
	return t
}

// words returns the numbers of a point. Those of the next second differ little.
func (p *RatePoint) words() [14]uint64 {
	bits := func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
	silent := uint64(0)
	if p.Silent {
		silent = 1
	}
	return [...]uint64{
		uint64(p.At) / uint64(second), bits(p.Prefill), bits(p.Decode), p.Generated, uint64(p.Running), uint64(p.Queued), uint64(p.KVUsed), bits(p.KVShare),
		bits(float64(p.CacheHits)), bits(float64(p.Accepted)), bits(float64(p.RankImbalance)), bits(float64(p.Preempted)), bits(float64(p.ReadShare)), silent,
	}
}

// pointOf returns the point with the given numbers.
func pointOf(w [14]uint64) RatePoint {
	value := func(i int) float32 { return math.Float32frombits(uint32(w[i])) }
	return RatePoint{
		At: event.Time(w[0] * uint64(second)), Prefill: float64(value(1)), Decode: float64(value(2)), Generated: w[3],
		Running: int(w[4]), Queued: int(w[5]), KVUsed: int(w[6]), KVShare: float64(value(7)),
		CacheHits: value(8), Accepted: value(9), RankImbalance: value(10), Preempted: value(11), ReadShare: value(12), Silent: w[13] != 0,
	}
}

// packPoints encodes points as the differences of their numbers.
func packPoints(points []RatePoint) []byte {
	var before [14]uint64
	packed := make([]byte, 0, 64*len(points))
	for i := range points {
		now := points[i].words()
		for k := range now {
			packed = binary.AppendVarint(packed, int64(now[k]-before[k]))
		}
		before = now
	}
	return slices.Clone(packed)
}

// unpackPoints appends the points that packPoints encoded to dst.
func unpackPoints(dst []RatePoint, packed []byte) []RatePoint {
	var w [14]uint64
	for len(packed) > 0 {
		for k := range w {
			more, n := binary.Varint(packed)
			w[k], packed = w[k]+uint64(more), packed[n:]
		}
		dst = append(dst, pointOf(w))
	}
	return dst
}
