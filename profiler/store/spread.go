package store

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// The buckets of a Spread: SpreadPerOctave to an octave, from spreadLeast on, which ends at 2.2 min. Shorter gaps count in the first
// bucket, longer ones in the last.
const (
	SpreadBuckets   = 96
	SpreadPerOctave = 4
	spreadLeast     = 8 * time.Microsecond
)

// Spread is how the ITL of one second is distributed: tokens by the logarithm of the gap before them, 384 bytes. At most SeriesLen of them
// are kept, and spreadSlots before their seconds are over.
type Spread [SpreadBuckets]uint32

// SpreadFrom is where a bucket of a Spread begins, and the one before it ends, in ns.
func SpreadFrom(bucket int) float64 {
	return float64(spreadLeast) * math.Exp2(float64(bucket)/SpreadPerOctave)
}

// spreadBucket is the bucket of a gap in ns.
func spreadBucket(gap int64) int {
	if gap <= int64(spreadLeast) {
		return 0
	}
	return min(int(math.Log2(float64(gap)/float64(spreadLeast))*SpreadPerOctave), SpreadBuckets-1)
}

// spreadSlots is how many seconds wait to be closed: as many as the other distributions of ITL know.
const spreadSlots = 60

// spreads counts gaps second by second.
type spreads struct {
	second int64
	slot   [spreadSlots]struct { // of second s at s % spreadSlots
		second int64
		spread *Spread
	}
}

// advance goes on to the second of a time: the ones before it are over.
func (p *spreads) advance(now event.Time) { p.second = max(p.second, int64(now)/int64(time.Second)) }

// record counts k gaps; times that run backwards count in the current second.
func (p *spreads) record(at event.Time, gap int64, k int) {
	p.advance(at)
	w := &p.slot[p.second%spreadSlots]
	if w.second != p.second || w.spread == nil {
		w.second, w.spread = p.second, new(Spread)
	}
	w.spread[spreadBucket(gap)] += uint32(k)
}

// of takes the spread of a second that is over, nil if nothing came in it.
func (p *spreads) of(second int64) *Spread {
	w := &p.slot[max(second, 0)%spreadSlots]
	if w.second != second {
		return nil
	}
	taken := w.spread
	w.spread = nil
	return taken
}
