package metric

import "math"

// Drift says how much of the routing of a layer goes to other experts than before.
type Drift struct {
	Moved  float64 // half the sum of the differences between the experts' shares (total variation distance), 0 to 1
	Chance float64 // what Moved would be on average if nothing had changed and all picks were drawn independently
	Expert int     // the expert whose share changed most, the first of equals
	Change float64 // of its share
}

// DriftOf compares the picks of the same experts at two times, false if either has none, or if their numbers differ.
//
// Two samples of the same router differ, too. The difference between the shares of an expert with the share m in samples of a and b picks
// is nearly normal with the variance m (1-m) (1/a + 1/b), and the mean of its size sqrt(2/pi) times the root of that. The picks of a token
// follow those of the one before, so that chance does rather more.
func DriftOf(before, after []uint64) (d Drift, ok bool) {
	if len(before) != len(after) {
		return Drift{}, false
	}
	var a, b uint64
	for i := range before {
		a, b = a+before[i], b+after[i]
	}
	if a == 0 || b == 0 {
		return Drift{}, false
	}
	ofA, ofB := 1/float64(a), 1/float64(b)
	spread := 2 / math.Pi * (ofA + ofB)
	for i := range before {
		p, q := float64(before[i])*ofA, float64(after[i])*ofB
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
