package store

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// The buckets of a Spread: SpreadPerOctave per octave, from minSpreadGap up to 2.2 min. Shorter gaps count in the first
// bucket, longer ones in the last.
const (
	SpreadBuckets   = 96
	SpreadPerOctave = 4
	minSpreadGap    = 8 * time.Microsecond
)

// Spread is a logarithmic histogram of the gaps of one second, weighted by tokens, 384 bytes. At most SeriesLen +
// spreadSlots of them are kept.
type Spread [SpreadBuckets]uint32

// SpreadStart returns the lower bound of a bucket in ns; the bucket before it ends there.
func SpreadStart(bucket int) float64 {
	return float64(minSpreadGap) * math.Exp2(float64(bucket)/SpreadPerOctave)
}

// spreadBucket returns the bucket of a gap in ns.
func spreadBucket(gap int64) int {
	if gap <= int64(minSpreadGap) {
		return 0
	}
	return min(int(math.Log2(float64(gap)/float64(minSpreadGap))*SpreadPerOctave), SpreadBuckets-1)
}

// spreadSlots is how many seconds wait to be closed: the window of the other ITL distributions.
const spreadSlots = 60

// spreads counts gaps per second.
type spreads struct {
	second int64
	slots  *[spreadSlots]spreadSlot // second s at s % spreadSlots; nil: no gaps were counted
}

type spreadSlot struct {
	second int64
	spread *Spread
}

// advance sets the current second to that of now, unless that is earlier.
func (p *spreads) advance(now event.Time) { p.second = max(p.second, int64(now)/int64(time.Second)) }

// record counts k gaps. Times that run backwards count in the current second.
func (p *spreads) record(at event.Time, gap int64, k int) {
	p.advance(at)
	if p.slots == nil {
		p.slots = new([spreadSlots]spreadSlot)
	}
	w := &p.slots[p.second%spreadSlots]
	if w.second != p.second || w.spread == nil {
		w.second, w.spread = p.second, new(Spread)
	}
	w.spread[spreadBucket(gap)] += uint32(k)
}

// take removes and returns the spread of an ended second; nil if it had no gaps.
func (p *spreads) take(second int64) *Spread {
	if p.slots == nil {
		return nil
	}
	w := &p.slots[max(second, 0)%spreadSlots]
	if w.second != second {
		return nil
	}
	taken := w.spread
	w.spread = nil
	return taken
}
