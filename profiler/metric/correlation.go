package metric

import (
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	// LeastPairs is how many pairs a correlation must rest on.
	LeastPairs = 12
	// strongRho is how many standard deviations of chance, 1/sqrt(n-1), a correlation must be away from 0 to be called strong: chance alone gives
	// that less than once in 1,000, so that of a few dozen that are looked at together hardly one is strong by chance.
	strongRho = 3.3
)

// Correlation says how two series go together.
type Correlation struct {
	// Rho is Spearman's coefficient, -1 to 1: Pearson's of the ranks, where equal values share the mean of theirs. NotYet for fewer than
	// LeastPairs pairs, Undefined if one of the series does not change.
	Rho event.Reading
	N   int // pairs
}

// Strong reports whether chance would hardly give such a coefficient.
func (c Correlation) Strong() bool {
	return c.Rho.OK() && math.Abs(c.Rho.V)*math.Sqrt(float64(c.N-1)) >= strongRho
}

// Ranks is the memory of Spearman between calls. Whoever correlates many series with one gives that as y: it is ranked once.
type Ranks struct {
	x, y   []float64
	order  []ranked
	ranksX []float64
	ranksY []float64
	lastY  []float64 // that ranksY are the ranks of
}

// ranked is a value and where it stands.
type ranked struct {
	v float64
	i int32
}

// Spearman correlates the n pairs that at gives; those with a NaN are left out.
func (r *Ranks) Spearman(n int, at func(i int) (x, y float64)) Correlation {
	r.x, r.y = r.x[:0], r.y[:0]
	for i := range n {
		if a, b := at(i); !math.IsNaN(a) && !math.IsNaN(b) {
			r.x, r.y = append(r.x, a), append(r.y, b)
		}
	}
	c := Correlation{Rho: event.Absent(event.NotYet), N: len(r.x)}
	if c.N < LeastPairs {
		return c
	}
	r.ranksX = r.rank(r.ranksX, r.x)
	if !slices.Equal(r.y, r.lastY) {
		r.ranksY, r.lastY = r.rank(r.ranksY, r.y), append(r.lastY[:0], r.y...)
	}
	c.Rho = pearson(r.ranksX, r.ranksY)
	return c
}

// rank appends to dst[:0] the rank of each value, from 0; equal values share the mean of theirs.
func (r *Ranks) rank(dst, values []float64) []float64 {
	order := r.order[:0]
	for i, v := range values {
		order = append(order, ranked{v, int32(i)})
	}
	r.order = order
	slices.SortFunc(order, func(a, b ranked) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		}
		return 0
	})
	dst = append(dst[:0], values...)
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && order[to].v == order[from].v {
			to++
		}
		for _, o := range order[from:to] {
			dst[o.i] = float64(from+to-1) / 2
		}
		from = to
	}
	return dst
}

// pearson is the linear correlation of ranks, whose mean is (n-1)/2.
func pearson(x, y []float64) event.Reading {
	mean := float64(len(x)-1) / 2
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-mean, y[i]-mean
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return event.Absent(event.Undefined)
	}
	return event.From(max(min(xy/math.Sqrt(xx*yy), 1), -1))
}
