package table

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

func TestFitFindsTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slope, at0 := rapid.Float64Range(1e-6, 1e-2).Draw(t, "slope"), rapid.Float64Range(0, 1).Draw(t, "at0")
		points := []Point{{200_000, at0 + slope*200_000}} // ensures different prompt lengths
		for _, x := range rapid.SliceOfNDistinct(rapid.IntRange(1, 100_000), 2, 50, func(x int) int { return x }).Draw(t, "x") {
			points = append(points, Point{float64(x), at0 + slope*float64(x)})
		}
		f := fit(points)
		if !f.Meaningful || math.Abs(f.Slope-slope) > 1e-6*slope+1e-12 || math.Abs(f.At0-at0) > 1e-6*(at0+slope*f.MaxX) || f.R2 < 0.999999 {
			t.Fatalf("%+v, want %v + %v x", f, at0, slope)
		}
	})
}

func TestFitNeedsDifferentPrompts(t *testing.T) {
	for _, points := range [][]Point{nil, {{1, 1}, {2, 2}}, {{5, 1}, {5, 2}, {5, 3}}, {{20, 1}, {21, 2}, {29, 3}}} {
		if f := fit(points); f.Meaningful || math.IsNaN(f.Slope) {
			t.Errorf("%v has the line %+v", points, f)
		}
	}
	if f := fit([]Point{{1, 2}, {2, 2}, {3, 2}}); !f.Meaningful || f.Slope != 0 || f.R2 != 1 {
		t.Errorf("a level line is %+v", f)
	}
	if f := fit([]Point{{1, 1}, {2, 5}, {3, 1}}); f.R2 > 1e-9 || f.Meaningful || !f.NoTrend {
		t.Errorf("no line explains this: %+v", f)
	}
}

// The scatter plot excludes cold requests, cached tokens, requests whose computed tokens are unknown, and requests without a first token.
func TestPointsOfTheScatter(t *testing.T) {
	s := &store.Snapshot{
		Earlier: []*store.Request{{PromptTokens: 10, Computed: 6, TTFT: event.DerivedValue(.1)}, {PromptTokens: 10, TTFT: event.DerivedValue(.1)}},
		Requests: []*store.Request{
			{PromptTokens: 9, Computed: 9, TTFT: event.DerivedValue(.2)}, {PromptTokens: 9, Computed: 9, Cold: true, TTFT: event.DerivedValue(2)}, {PromptTokens: 9, Computed: 9}, {TTFT: event.DerivedValue(1)},
		},
	}
	points, f := TTFTByPrompt(s)
	if len(points) != 2 || points[0] != (Point{6, .1}) || points[1] != (Point{9, .2}) || f.N != 2 {
		t.Errorf("points %v, %+v", points, f)
	}
}
