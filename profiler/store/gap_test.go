package store

import "testing"

// TestTokenGap checks gaps with pacing and with shared stamps.
func TestTokenGap(t *testing.T) {
	for _, c := range []struct {
		since, paced int64
		n            int
		gap, within  int64
	}{
		{100, 0, 1, 100, 0},
		{100, 30, 1, 70, 30},
		{100, 0, 4, 25, 0},
		{100, 40, 4, 15, 40},
		{100, 130, 2, 0, 100}, // the pacing began before the previous token was received
		{0, 0, 3, 0, 0},
	} {
		if gap, within := tokenGap(c.since, c.paced, c.n); gap != c.gap || within != c.within {
			t.Errorf("tokenGap(%d, %d, %d) = %d, %d, want %d, %d", c.since, c.paced, c.n, gap, within, c.gap, c.within)
		}
	}
}
