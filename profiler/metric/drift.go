package metric

import "math"

// Drift measures how much the routing of a layer changed between two samples of its picks.
type Drift struct {
	Moved  float64 // total variation distance: half the sum of the absolute differences of the experts' shares, 0 to 1
	Chance float64 // expected Moved if the routing did not change and picks were independent
	Expert int     // expert whose share changed most; the first one on a tie
	Change float64 // of its share
}

// Significant reports whether the routing changed by more than chance explains.
func (d *Drift) Significant() bool { return d.Moved > 2*d.Chance }

// DriftOf compares the picks of the same experts at two times. It returns false if either sample is empty or if their
// lengths differ.
//
// Two samples of an unchanged router differ as well. The difference between an expert's shares in samples of a and b
// picks is nearly normal, with variance m (1-m) (1/a + 1/b) for a mean share m, so its mean absolute value is
// sqrt(2/pi) times the standard deviation. The picks of successive tokens are correlated, so the real noise is somewhat
// larger.
func DriftOf(before, after []uint64) (d Drift, ok bool) {
	if len(before) != len(after) {
		return Drift{}, false
	}
	var a, b float64 // sums of counts from outside may exceed an integer
	for i := range before {
		a, b = a+float64(before[i]), b+float64(after[i])
	}
	if a == 0 || b == 0 {
		return Drift{}, false
	}
	ofA, ofB := 1/a, 1/b
	spread := 2 / math.Pi * (ofA + ofB)
	for i := range before {
		// The conversions keep a processor that fuses multiply and subtract from a change where there is none.
		p, q := float64(float64(before[i])*ofA), float64(float64(after[i])*ofB)
		d.Moved += math.Abs(q-p) / 2
		m := (p + q) / 2
		d.Chance += math.Sqrt(spread*m*(1-m)) / 2
		if math.Abs(q-p) > math.Abs(d.Change) {
			d.Expert, d.Change = i, q-p
		}
	}
	d.Moved, d.Chance = min(d.Moved, 1), min(d.Chance, 1)
	return d, true
}
