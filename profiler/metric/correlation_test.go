package metric

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func spearman(x, y []float64) Correlation {
	var r Ranks
	return r.Spearman(len(x), func(i int) (float64, float64) { return x[i], y[i] })
}

// TestSpearmanMatchesTextbook uses the example of IQ and hours of television, with two pairs added to reach a dozen.
// 101, 17 and 20 appear twice, so their ranks are shared.
func TestSpearmanMatchesTextbook(t *testing.T) {
	iq := []float64{106, 86, 100, 101, 99, 103, 97, 113, 112, 110, 101, 95}
	tv := []float64{7, 0, 27, 50, 28, 29, 20, 12, 6, 17, 17, 20}
	if c := spearman(iq, tv); !c.Rho.OK() || math.Abs(c.Rho.V-(-0.2091391631)) > 1e-9 || c.N != 12 || c.Strong() {
		t.Errorf("%+v, want -0.209", c)
	}
}

// TestSpearmanDependsOnOrderOnly checks that an increasing function of a series changes nothing and a decreasing one
// flips the sign.
func TestSpearmanDependsOnOrderOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(LeastPairs, 80).Draw(t, "n")
		x, y, rising, falling := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = float64(rapid.IntRange(-20, 20).Draw(t, "x")), float64(rapid.IntRange(-20, 20).Draw(t, "y"))
			rising[i], falling[i] = math.Pow(x[i], 3), -x[i]
		}
		is, same, turned, swapped := spearman(x, y), spearman(rising, y), spearman(falling, y), spearman(y, x)
		if !is.Rho.OK() {
			return // one series is constant
		}
		if math.Abs(is.Rho.V) > 1 || is.Rho != same.Rho || math.Abs(is.Rho.V+turned.Rho.V) > 1e-9 || math.Abs(is.Rho.V-swapped.Rho.V) > 1e-9 {
			t.Fatalf("%v, rising %v, falling %v, swapped %v", is, same, turned, swapped)
		}
		if c := spearman(x, x); c.Rho.OK() && c.Rho.V < 1-1e-9 {
			t.Fatalf("with itself %v", c)
		}
	})
}

func TestSpearmanNeedsVaryingPairs(t *testing.T) {
	var x, y, level []float64
	for i := range LeastPairs + 5 {
		x, y, level = append(x, float64(i)), append(y, float64(i*i)), append(level, 7)
	}
	if c := spearman(x, y); c.Rho.V != 1 || !c.Strong() {
		t.Errorf("increasing series: %+v", c)
	}
	if c := spearman(x, level); c.Rho.OK() || c.Rho.Absence() != "undefined" || c.Strong() {
		t.Errorf("constant series: %+v", c)
	}
	for i := range 6 {
		y[i] = math.NaN()
	}
	if c := spearman(x, y); c.Rho.OK() || c.Rho.Absence() != "not yet" || c.N != LeastPairs-1 {
		t.Errorf("too few pairs: %+v", c)
	}
}

// BenchmarkSpearman correlates one gauge over the ten minutes that are kept.
func BenchmarkSpearman(b *testing.B) {
	var x, y [600]float64
	for i := range x {
		x[i], y[i] = math.Sin(float64(i*i)), math.Cos(float64(i*7))
	}
	var r Ranks
	b.ReportAllocs()
	for b.Loop() {
		r.Spearman(len(x), func(i int) (float64, float64) { return x[i], y[i] })
	}
}
