package table

import (
	"math"

	"github.com/llmtop/llmtop/profiler/store"
)

// Point is one request in the scatter plot of TTFT against prompt length.
type Point struct{ X, Y float64 }

// Fit is a least-squares line Y = At0 + Slope X. R2 is the share of the variance that it explains.
type Fit struct {
	N          int
	Slope, At0 float64
	R2         float64
	MaxX, MaxY float64
	Meaningful bool // at least three points, the longest prompt at least 1.5 times the shortest, and a trend
	NoTrend    bool // the line explains less than leastR2 of the variance: it means nothing
}

// leastR2 is the share of the variance that a line has to explain to be drawn and to give its slope.
const leastR2 = 0.1

// TTFTByPrompt fits TTFT in s to the computed prompt tokens (without cached ones) of the warm requests of a snapshot.
// The slope is the cost per prompt token.
func TTFTByPrompt(s *store.Snapshot) (points []Point, f Fit) {
	points = make([]Point, 0, len(s.Earlier)+len(s.Requests))
	for _, list := range [...][]*store.Request{s.Earlier, s.Requests} {
		for _, r := range list {
			if HasPrompt(r) {
				points = append(points, Point{float64(r.Computed), r.TTFT.V})
			}
		}
	}
	return points, fit(points)
}

// HasPrompt reports whether a request is a point of TTFTByPrompt.
func HasPrompt(r *store.Request) bool { return !r.Cold && r.TTFT.OK() && r.Computed > 0 }

// fit computes the line in two passes, centred on the means to avoid cancellation.
func fit(points []Point) (f Fit) {
	f.N = len(points)
	var mx, my float64
	shortest := math.Inf(1)
	for _, p := range points {
		f.MaxX, f.MaxY, shortest = max(f.MaxX, p.X), max(f.MaxY, p.Y), min(shortest, p.X)
		mx += p.X / float64(f.N)
		my += p.Y / float64(f.N)
	}
	var xx, xy, yy float64
	for _, p := range points {
		dx, dy := p.X-mx, p.Y-my
		xx += dx * dx
		xy += dx * dy
		yy += dy * dy
	}
	if f.N < 3 || f.MaxX < 1.5*shortest || xx <= 1e-12*mx*mx*float64(f.N) {
		return f
	}
	f.Slope = xy / xx
	f.At0 = my - f.Slope*mx
	f.R2 = 1
	if yy > 0 {
		f.R2 = math.Min(xy*xy/(xx*yy), 1)
	}
	f.NoTrend = f.R2 < leastR2
	f.Meaningful = !f.NoTrend
	return f
}
