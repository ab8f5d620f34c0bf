package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// checkedSnapshot returns a session of three requests that are checked against four targets: the first meets all, the
// second misses TPOT and ITL, the third misses all.
func checkedSnapshot() *store.Snapshot {
	s := viewtest.NewSceneWithTargets(store.Targets{TTFT: 100 * time.Millisecond, TPOT: 30 * time.Millisecond, ITL: 40 * time.Millisecond, E2EL: 700 * time.Millisecond})
	s.Engine(event.EngineReady, "")
	for i, gap := range []event.Time{20 * ms, 50 * ms, 90 * ms} {
		id := event.RequestID(i + 1)
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued})
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
		s.Now += event.Time(i+1) * 40 * ms
		for k := range 10 {
			if k > 0 {
				s.Now += gap
			}
			s.Emit(event.Event{Kind: event.KindToken, Req: id, N: 1, ID: int32(k), Index: int32(k), Text: "w"})
		}
		s.Outcome(id, event.StateFinished, "stop", 30, 10)
		s.Now += 300 * ms
	}
	return s.Snapshot()
}

// Each missed target is marked at its number, with and without colours, and counted in the latency view.
func TestMissedTargetsAreMarked(t *testing.T) {
	for _, profile := range []theme.Profile{theme.TrueColour, theme.NoColour} {
		a := open(checkedSnapshot(), profile, false, 160, 45)
		a.press("2")
		rows := strings.Split(viewtest.StripStyles(a.View().Content), "\n")
		for name, marked := range map[string][]string{"#1 ": nil, "#2 ": {"50.0 ms"}, "#3 ": {"90.0 ms", "930 ms"}} {
			row := rowWith(rows, name)
			if got := strings.Count(row, "✗"); got != map[string]int{"#1 ": 0, "#2 ": 2, "#3 ": 4}[name] {
				t.Errorf("%d missed targets in %q", got, row)
			}
			for _, words := range marked {
				if !strings.Contains(row, "✗"+words) {
					t.Errorf("%s is not marked in %q", words, row)
				}
			}
		}
		if foot := strings.Join(rows, "\n"); !strings.Contains(foot, "2 missed a target") {
			t.Error("the sums do not show how many requests missed a target")
		}
		a.press("4")
		if row := rowWith(strings.Split(viewtest.StripStyles(a.View().Content), "\n"), "targets"); !strings.Contains(row, "TTFT 100 ms 67 %") ||
			!strings.Contains(row, "TPOT 30.0 ms 33 %") || !strings.Contains(row, "p99 ITL 40.0 ms 33 %") || !strings.Contains(row, "E2EL 700 ms 67 %") ||
			!strings.Contains(row, "all met by 33 % of 3") {
			t.Errorf("compliance: %q", row)
		}
	}
}

// rowWith returns the first row that contains some text.
func rowWith(rows []string, words string) string {
	for _, row := range rows {
		if strings.Contains(row, words) {
			return row
		}
	}
	return ""
}
