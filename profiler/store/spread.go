package store

import (
	"math"
	"time"
)

// The buckets of a Spread: SpreadPerOctave per octave, from minSpreadGap up to 2.2 min. Shorter gaps count in the first
// bucket, longer ones in the last.
const (
	SpreadBuckets   = 96
	SpreadPerOctave = 4
	minSpreadGap    = 8 * time.Microsecond
)

// Spread is a logarithmic histogram of the gaps of one second, weighted by tokens, 384 bytes. At most SeriesLen + 1
// of them are kept.
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
