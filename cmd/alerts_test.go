package cmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// TestMain's binary stands for a user's command when this variable names a file: it writes what it was told there.
const alertTold = "LLMTOP_TEST_ALERT"

func init() {
	if path := os.Getenv(alertTold); path != "" {
		told := strings.Join(os.Args[1:], " ")
		for _, v := range os.Environ() {
			if strings.HasPrefix(v, "LLMTOP_ALERT") {
				told += "\n" + v
			}
		}
		if err := os.WriteFile(path, []byte(told), 0o600); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// A rule that fires is told to its command, which gets every word as it is, and in the log.
func TestAlertsRunTheirCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	told := filepath.Join(t.TempDir(), "told")
	t.Setenv(alertTold, told)
	rules, err := alert.ParseRules([]map[string]any{
		{"name": "any", "when": "queued >= 1", "run": []any{self, "$HOME; `id`", "two words"}},
		{"name": "broken", "when": "queued >= 1", "run": []any{filepath.Join(t.TempDir(), "none")}},
		{"name": "never", "when": "queued >= 1", "for": "1h", "run": []any{self, "never"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(store.Options{Now: func() event.Time { return 1 }})
	a := newAlerting(rules, true, false)
	a.over(s, "tcp:\x1b[31mhost")
	s.atEnd = append(s.atEnd, a.close)
	err = s.run(t.Context(), func(ctx context.Context) error {
		s.store.Emit(event.Event{Kind: event.KindModel, Data: &event.Model{Name: "evil\nLLMTOP_X=1\x07", Architecture: "x"}})
		s.store.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{}})
		for {
			if _, err := os.Stat(told); err == nil && logged(s.store.Snapshot(), "alert broken: run: ") {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"$HOME; `id` two words\n", "LLMTOP_ALERT=any", "LLMTOP_ALERT_STATE=firing", "LLMTOP_ALERT_VALUE=1", "LLMTOP_ALERT_WHEN=queued >= 1",
		"LLMTOP_ALERT_ENGINE=tcp:[31mhost", "LLMTOP_ALERT_MODEL=evilLLMTOP_X=1",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the command was not told %q:\n%s", want, got)
		}
	}
	if snap := s.store.Snapshot(); !logged(snap, "alert any is firing: 1 (queued >= 1)") || logged(snap, "alert never") {
		t.Errorf("the log is %v", snap.Log)
	}
	if states := a.states(); len(states) != 3 || states[0].State != alert.Firing || states[2].State != alert.Pending {
		t.Errorf("the rules stand so: %+v", states)
	}
}

// logged reports whether a line of the log begins so.
func logged(s *store.Snapshot, words string) bool {
	for _, l := range s.Log {
		if strings.HasPrefix(l.Text, words) {
			return true
		}
	}
	return false
}
