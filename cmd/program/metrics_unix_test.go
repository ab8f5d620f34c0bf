//go:build unix

package program_test

import (
	"strings"
	"testing"
)

// TestPushErrorsWaitForTheScreen checks that an unreachable receiver does not disturb the screen, and is reported after
// it closes.
func TestPushErrorsWaitForTheScreen(t *testing.T) {
	t.Parallel()
	p := start(t, 120, 36, "--otlp-push", "http://127.0.0.1:1")
	p.waitFor(t, "q quit")
	if strings.Contains(p.text(), "push to OpenTelemetry") {
		t.Errorf("the screen shows the error of a push:\n%s", p.text())
	}
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if end := string(p.tail); strings.Count(end, "llmtop: push to OpenTelemetry: ") != 1 {
		t.Errorf("at the end it says %q", end[max(0, len(end)-300):])
	}
}
