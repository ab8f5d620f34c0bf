package pane

import (
	"slices"
	"testing"
)

func TestAxisLabels(t *testing.T) {
	for _, c := range []struct {
		units []Unit
		top   float64
		steps int
		want  []string
	}{
		{TimeAxis, 8e6, 4, []string{"0 ms", "2 ms", "4 ms", "6 ms", "8 ms"}},
		{TimeAxis, 1e6, 4, []string{"0.00 ms", "0.25 ms", "0.50 ms", "0.75 ms", "1.00 ms"}},
		{TimeAxis, 3e6, 2, []string{"0.0 ms", "1.5 ms", "3.0 ms"}},
		{TimeAxis, 600e3, 3, []string{"0 µs", "200 µs", "400 µs", "600 µs"}},
		{TimeAxis, 500, 2, []string{"0 ns", "250 ns", "500 ns"}},
		{ByteAxis, 100e6, 2, []string{"0 MB", "50 MB", "100 MB"}},
		{CountAxis, 5000, 2, []string{"0", "2500", "5000"}},
		{CountAxis, 2e4, 4, []string{"0k", "5k", "10k", "15k", "20k"}},
		{CountAxis, 2, 4, []string{"0.0", "0.5", "1.0", "1.5", "2.0"}},
	} {
		f, step := AxisLabel(c.units, c.top), c.top/float64(c.steps)
		var got []string
		for i := range c.steps + 1 {
			got = append(got, f(step*float64(i), step))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("scale to %v: %q, want %q", c.top, got, c.want)
		}
	}
}
