package placement

import (
	"math"
	"strings"
	"testing"
)

// TestTrial plants speeds of an engine whose token takes 100 ms, 40 ms of them for reading 400 MB of experts at 10 GB/s. The
// plan keeps three quarters of them on the device: 70 ms, a gain of 1.43.
func TestTrial(t *testing.T) {
	trial := func(device string, rate float64, with ...float64) *Trial {
		return &Trial{Device: device, SlowBytes: [2]float64{400e6, 100e6}, ReadRate: rate, Speeds: [2][]float64{{10, 10, 10}, with}}
	}
	for name, c := range map[string]struct {
		*Trial
		predicted float64
		want      string
	}{
		"as predicted":       {trial("GPU", 10e9, 14.1, 13.5, 14.2), 1 / 0.7, "as predicted: reading"},
		"less":               {trial("GPU", 10e9, 11.5, 11.6, 11.8), 1 / 0.7, "less than predicted: 46 %"},
		"more":               {trial("GPU", 10e9, 18, 19, 20), 1 / 0.7, "more than predicted"},
		"no gain":            {trial("GPU", 10e9, 9.8, 10.1, 10.2), 1 / 0.7, "no gain measured, 1.43"},
		"from caches":        {trial("GPU", 3e9, 14, 14, 14), 0, "no prediction"},
		"unknown rate":       {trial("GPU", 0, 14, 14, 14), 0, "no prediction"},
		"no device":          {trial("", 10e9, 9.8, 10.1, 10.2), 1, "as predicted: llama.cpp has no faster device"},
		"no device, slower":  {trial("", 10e9, 7, 7.1, 6.9), 1, "unlike predicted"},
		"no device, by once": {trial("", 10e9, 8, 8.1, 10.2), 1, "as predicted"},
	} {
		if got, _ := c.Predicted(); math.Abs(got-c.predicted) > 1e-9 {
			t.Errorf("%s: predicted %v, want %v", name, got, c.predicted)
		}
		if got := c.Verdict(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
