package session

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

// The test binary acts as a user's command if this variable names a file: it writes its arguments and alert variables
// there.
const alertOutput = "LLMTOP_TEST_ALERT"

func init() {
	if path := os.Getenv(alertOutput); path != "" {
		output := strings.Join(os.Args[1:], " ")
		for _, v := range os.Environ() {
			if strings.HasPrefix(v, "LLMTOP_ALERT") {
				output += "\n" + v
			}
		}
		if err := os.WriteFile(path, []byte(output), 0o600); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// TestAlertsRunTheirCommand checks that a firing rule runs its command with unchanged arguments, and that it is logged.
func TestAlertsRunTheirCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "output")
	t.Setenv(alertOutput, output)
	rules, err := alert.ParseRules([]map[string]any{
		{"name": "any", "when": "queued >= 1", "run": []any{self, "$HOME; `id`", "two words"}},
		{"name": "broken", "when": "queued >= 1", "run": []any{filepath.Join(t.TempDir(), "none")}},
		{"name": "never", "when": "queued >= 1", "for": "1h", "run": []any{self, "never"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := New(store.Options{Now: func() event.Time { return 1 }})
	a := NewAlerts(rules, true, false)
	a.Watch(s, "tcp:\x1b[31mhost")
	s.AtEnd(func() error { a.Close(); return nil })
	err = s.Run(t.Context(), func(ctx context.Context) error {
		s.Store.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "x", State: event.EngineReady, Caps: event.CapQueue}})
		s.Store.Emit(event.Event{Kind: event.KindModel, Data: &event.Model{Name: "evil\nLLMTOP_X=1\x07", Architecture: "x"}})
		s.Store.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{}})
		for {
			if _, err := os.Stat(output); err == nil && logged(s.Store.Snapshot(), "alert broken: run: ") {
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
	got, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"$HOME; `id` two words\n", "LLMTOP_ALERT=any", "LLMTOP_ALERT_STATE=firing", "LLMTOP_ALERT_VALUE=1", "LLMTOP_ALERT_WHEN=queued >= 1",
		"LLMTOP_ALERT_ENGINE=tcp:\uFFFDhost", "LLMTOP_ALERT_MODEL=evil LLMTOP_X=1\uFFFD",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the command did not get %q:\n%s", want, got)
		}
	}
	if snap := s.Store.Snapshot(); !logged(snap, "alert any is firing: 1 (queued >= 1)") || logged(snap, "alert never") {
		t.Errorf("log %v", snap.Log)
	}
	if states := a.states(); len(states) != 3 || states[0].State != alert.Firing || states[2].State != alert.Pending {
		t.Errorf("states %+v", states)
	}
}

// logged reports whether a line of the log begins with prefix.
func logged(s *store.Snapshot, prefix string) bool {
	for _, l := range s.Log {
		if strings.HasPrefix(l.Text, prefix) {
			return true
		}
	}
	return false
}
