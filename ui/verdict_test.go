package ui

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// verdictRow returns the row below the header.
func verdictRow(s *store.Snapshot, w int) string {
	return strings.TrimSpace(strings.Split(open(s, theme.TrueColour, false, w, 36).screen(), "\n")[1])
}

// While the connection is broken there is no verdict, whatever the last one was.
func TestNoVerdictWithoutConnection(t *testing.T) {
	for link, want := range map[event.Link]string{
		event.LinkStale: "no verdict: no data from the engine", event.LinkDisconnected: "no verdict: not connected",
		event.LinkRefused: "no verdict: not connected", event.LinkConnected: "✓ HEALTHY  fast enough",
	} {
		s := *viewtest.Remote(event.Remote{Address: "tcp:127.0.0.1:9000", Link: link})
		s.Health = verdict.Health{Status: verdict.Healthy, Verdict: &verdict.Verdict{Severity: verdict.Good, Text: "fast enough"}}
		if got := verdictRow(&s, 120); got != want {
			t.Errorf("%v: %q, want %q", link, got, want)
		}
	}
	if got := verdictRow(viewtest.Played("unreached"), 80); got != "no verdict: not connected" {
		t.Errorf("never reached: %q", got)
	}
}

// A verdict with numbers of a moment ago says so, at every width.
func TestVerdictOfAMomentAgo(t *testing.T) {
	v := verdict.Verdict{Severity: verdict.Watch, Topic: "token gaps", Text: "Token gaps: p99 10.9 ms is 12.6× p50 (limit 3×): stalls" + verdict.Outdated, Try: "stop other programs"}
	for _, status := range []verdict.Status{verdict.Healthy, verdict.Degraded} {
		s := *viewtest.LiveSnapshot()
		s.Health = verdict.Health{Status: status, Verdict: &v}
		for _, w := range []int{80, 120, 160} {
			if got := verdictRow(&s, w); !strings.Contains(got, verdict.Outdated) || w >= 160 && status == verdict.Degraded && !strings.Contains(got, v.Try) {
				t.Errorf("%d columns: %q", w, got)
			}
		}
	}
}
