package metric

import (
	"cmp"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	// LeastPairs is the minimum number of pairs for a correlation.
	LeastPairs = 12
	// strongRho is how many standard deviations under independence, 1/sqrt(n-1) each, a coefficient must be away from 0
	// to be called strong. Independent series exceed it less than once in 1,000, so hardly any of a few dozen series
	// tested together does so by chance.
	strongRho = 3.3
)

// Correlation is the rank correlation of two series.
type Correlation struct {
	// Rho is Spearman's coefficient, -1 to 1: Pearson's coefficient of the ranks, where equal values share their mean
	// rank. It is NotYet for fewer than LeastPairs pairs, and Undefined if one of the series is constant.
	Rho event.Reading
	N   int // pairs
}

// Strong reports whether the coefficient is unlikely to arise by chance.
func (c Correlation) Strong() bool {
	return c.Rho.OK() && math.Abs(c.Rho.V)*math.Sqrt(float64(c.N-1)) >= strongRho
}

// Ranks holds the buffers of Spearman between calls. To correlate many series with one, pass that one as y: it is
// ranked only once.
type Ranks struct {
	x, y   []float64
	order  []int // indexes of values, ascending by value
	ranksX []float64
	ranksY []float64
	lastY  []float64 // the series whose ranks are in ranksY
}

// Spearman correlates n pairs returned by at. Pairs with a NaN are skipped.
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

// rank appends to dst[:0] the rank of each value, from 0. Equal values share their mean rank.
func (r *Ranks) rank(dst, values []float64) []float64 {
	order := r.order[:0]
	for i := range values {
		order = append(order, i)
	}
	r.order = order
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	dst = append(dst[:0], values...)
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			dst[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return dst
}

// pearson computes the linear correlation of two series of ranks, whose mean is (n-1)/2.
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
	return event.DerivedValue(max(min(xy/math.Sqrt(xx*yy), 1), -1))
}
