package chrome

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/ui/grid"
)

// A verdict without room drops its remedy, then its asides, then whole words of the cause.
func TestVerdictInLittleRoom(t *testing.T) {
	s := &store.Snapshot{Wall: time.Unix(0, 0).UTC()}
	s.Health = verdict.Health{Status: verdict.Degraded, Verdict: &verdict.Verdict{
		Text: "Token gaps: p99 35.1 ms is 38.0x p50 942 µs in the last minute (limit 8x)", Try: "see the stalls",
	}}
	for w, want := range map[int]string{
		130: "Token gaps: p99 35.1 ms is 38.0x p50 942 µs in the last minute (limit 8x) → see the stalls",
		110: "Token gaps: p99 35.1 ms is 38.0x p50 942 µs in the last minute (limit 8x)",
		80:  "Token gaps: p99 35.1 ms is 38.0x p50 942 µs",
		70:  "Token gaps: p99 35.1 ms is 38.0x p50…",
		50:  "Token gaps: p99…",
	} {
		var g grid.Grid
		g.Reset(w, 1)
		DrawVerdict(g.All(), s, frame(), func(string) string { return "" })
		if _, got, _ := strings.Cut(strings.TrimSpace(g.Plain()), "00:00: "); got != want {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}
