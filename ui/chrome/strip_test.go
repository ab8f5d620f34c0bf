package chrome

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/ui/grid"
)

// The key of a verdict leads to a view with its numbers: not to a machine that is not known, nor to a view that is not
// offered; the overview has the evidence of all.
func TestKeyToEvidence(t *testing.T) {
	keys := map[string]string{"Overview": "1", "Requests": "2", "Latency": "4", "System": "6"}
	for _, c := range []struct {
		topic, here string
		cause       verdict.Cause
		machine     bool
		without     string
		want        string
	}{
		{"lost time", "Overview", verdict.Unknown, true, "", "6"},
		{"lost time", "Overview", verdict.Unknown, false, "", "4"},
		{"lost time", "Overview", verdict.OtherProcesses, true, "", "6"},
		{"lost time", "Overview", verdict.Queue, true, "", "2"}, // the machine shows nothing of it
		{"lost time", "Overview", verdict.PromptOfOther, true, "", "2"},
		{"memory", "Requests", verdict.Unknown, false, "", "1"},
		{"decode", "Overview", verdict.Unknown, true, "", "4"},
		{"decode", "Overview", verdict.Unknown, true, "Latency", ""}, // the insights are on the screen
		{"TTFT", "Latency", verdict.Unknown, true, "Requests", ""},
		{"dropped events", "System", verdict.Unknown, true, "", "1"},
		{"engine", "Requests", verdict.Unknown, true, "", "1"},
	} {
		s := &store.Snapshot{}
		s.Host.Sampled = c.machine
		got := keyToEvidence(&verdict.Verdict{Topic: c.topic, Cause: c.cause}, s, func(view string) (string, bool) {
			if view == c.here {
				return "", true
			}
			return keys[view], keys[view] != "" && view != c.without
		})
		if got != c.want {
			t.Errorf("%+v: key %q", c, got)
		}
	}
}

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
		DrawVerdict(g.All(), s, frame(), func(string) (string, bool) { return "", false })
		if _, got, _ := strings.Cut(strings.TrimSpace(g.Plain()), "00:00: "); got != want {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}
