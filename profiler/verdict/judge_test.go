package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func at(now event.Time, ttft float64) *Evidence {
	e := calm()
	e.Now, e.Request, e.TTFT = now, 1, event.DerivedValue(ttft)
	return e
}

func TestMostSevereFirst(t *testing.T) {
	e := at(0, .01)
	e.KV, e.Failed = event.MeasuredValue(1), "gone"
	e.MemUsed, e.MemTotal = event.MeasuredValue(1), event.MeasuredValue(1)
	e.Running, e.BusyShare, e.CPU, e.Threads, e.Cores = 1, event.MeasuredValue(1), event.MeasuredValue(.1), 1, 2
	var topics []string
	for _, v := range new(Judge).Judge(e) {
		topics = append(topics, v.Topic)
	}
	want := []string{"engine", "memory", "KV cache", "bound", "TTFT"}
	for i := range want {
		if len(topics) != len(want) || topics[i] != want[i] {
			t.Fatalf("%v, want %v", topics, want)
		}
	}
}

// TestVerdictsDoNotFlicker checks that a verdict and a higher severity stay for holdTime, and that a rising severity
// shows at once; and that a text with former numbers says so.
func TestVerdictsDoNotFlicker(t *testing.T) {
	var j Judge
	past := false
	severity := func(e *Evidence) Severity {
		t.Helper()
		got := j.Judge(e)
		if len(got) != 1 {
			t.Fatalf("at %v: %d verdicts, want 1", time.Duration(e.Now), len(got))
		}
		if strings.HasSuffix(got[0].Text, Outdated) != past {
			t.Errorf("at %v: %q, want %q at the end: %v", time.Duration(e.Now), got[0].Text, Outdated, past)
		}
		return got[0].Severity
	}
	if severity(at(0, .1)) != Good || severity(at(1, .3)) != Bad {
		t.Error("a rising severity does not show at once")
	}
	past = true
	if severity(at(holdTime, .1)) != Bad {
		t.Error("a falling severity shows at once")
	}
	past = false
	if severity(at(holdTime+2, .1)) != Good {
		t.Error("a severity is held for too long")
	}
	past = true
	quiet := calm()
	quiet.Now = 2*holdTime + 2
	if severity(quiet) != Good {
		t.Error("a verdict leaves at once")
	}
	if quiet.Now++; len(j.Judge(quiet)) != 0 {
		t.Error("a verdict stays for too long")
	}
}

func TestBackwardClockDropsVerdicts(t *testing.T) {
	var j Judge
	j.Judge(at(100, .3))
	quiet := calm()
	quiet.Now = 50
	if got := j.Judge(quiet); len(got) != 0 {
		t.Errorf("verdicts of the future: %v", got)
	}
}
