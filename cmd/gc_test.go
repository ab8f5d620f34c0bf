package cmd

import (
	"testing"
	"time"
)

func TestNextPercent(t *testing.T) {
	for _, c := range []struct {
		percent int
		since   time.Duration
		want    int
	}{
		{maxPercent, collectEvery, maxPercent},
		{maxPercent, 2 * collectEvery, maxPercent / 2},
		{maxPercent, time.Hour, minPercent}, // idle
		{minPercent, collectEvery / 2, 2 * minPercent},
		{minPercent, collectEvery / 100, maxPercent}, // a burst
		{minPercent, 0, maxPercent},
	} {
		if got := nextPercent(c.percent, c.since); got != c.want {
			t.Errorf("%d %% after %v: %d %%, want %d %%", c.percent, c.since, got, c.want)
		}
	}
}
