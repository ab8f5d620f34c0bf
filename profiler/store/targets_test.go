package store

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// TestTargets checks requests against each target: a request counts as goodput if it met all of them.
func TestTargets(t *testing.T) {
	const first, gap, late = 20 * ms, 10 * ms, 40 * ms // E2EL 20 + 10 + 40 ms, TPOT 25 ms
	for _, c := range []struct {
		name    string
		targets Targets
		misses  Misses
	}{
		{"TTFT alone", Targets{TTFT: time.Duration(first)}, 0},
		{"TTFT", Targets{TTFT: time.Duration(first) - 1}, MissedTTFT},
		{"TPOT met", Targets{TPOT: 25 * time.Millisecond}, 0},
		{"TPOT", Targets{TPOT: 24 * time.Millisecond}, MissedTPOT},
		{"ITL met", Targets{ITL: 41 * time.Millisecond}, 0},
		{"ITL", Targets{ITL: 39 * time.Millisecond}, MissedITL},
		{"E2EL met", Targets{E2EL: 70 * time.Millisecond}, 0},
		{"E2EL", Targets{E2EL: 69 * time.Millisecond}, MissedE2EL},
		{"all", Targets{TTFT: 1, TPOT: 1, ITL: 1, E2EL: 1}, MissedTTFT | MissedTPOT | MissedITL | MissedE2EL},
	} {
		p := newSessionWithTargets(c.targets)
		p.engine(event.CapQueue | event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		p.state(0, 1, event.StateDispatched, nil)
		p.token(first, 1, 1)
		p.token(gap, 1, 1)
		p.token(late, 1, 1)
		p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 3})
		r := p.request(t, 1)
		if got := r.Misses(p.now); got != c.misses {
			t.Errorf("%s: misses %04b, want %04b", c.name, got, c.misses)
		}
		g := p.store.Snapshot().Latency.Goodput
		if good := g.OK() && g.V > 0; good != (c.misses == 0) {
			t.Errorf("%s: goodput %+v", c.name, g)
		}
	}
}

// TestTargetsOfRunningRequest checks that a running request misses a target as soon as it has run for longer.
func TestTargetsOfRunningRequest(t *testing.T) {
	p := newSessionWithTargets(Targets{TTFT: time.Second, E2EL: 2 * time.Second})
	p.state(0, 1, event.StateQueued, nil)
	if got := p.request(t, 1).Misses(p.now + event.Time(sec)); got != 0 {
		t.Errorf("within its targets: misses %04b", got)
	}
	if got := p.request(t, 1).Misses(p.now + event.Time(sec) + 1); got != MissedTTFT {
		t.Errorf("no first token after the TTFT target: misses %04b", got)
	}
	p.token(ms, 1, 1)
	if got := p.request(t, 1).Misses(p.now + event.Time(3*sec)); got != MissedE2EL {
		t.Errorf("running after the E2EL target: misses %04b", got)
	}
}

// TestNoTargets checks that nobody misses a target that nobody set, and that a slow first token is explained all the same.
func TestNoTargets(t *testing.T) {
	p := newSessionWithTargets(NoTargets)
	p.engine(event.CapQueue | event.CapTokens)
	p.state(0, 1, event.StateQueued, nil)
	p.state(0, 1, event.StateDispatched, nil)
	p.token(int64(sec), 1, 1)
	p.state(0, 1, event.StateFinished, nil)
	s := p.store.Snapshot()
	if r := p.request(t, 1); r.Misses(s.Now) != 0 || r.Slow == nil {
		t.Errorf("missed %b, explained %+v", r.Misses(s.Now), r.Slow)
	}
	if g := s.Latency.Goodput; g.Origin != event.NotReported {
		t.Errorf("goodput %+v", g)
	}
}

// TestTargetsWithoutGaps checks that tokens that came at once are judged by their mean time, by TPOT and ITL alike.
func TestTargetsWithoutGaps(t *testing.T) {
	for _, c := range []struct {
		targets Targets
		misses  Misses
		good    bool
	}{
		{Targets{TPOT: 2 * time.Millisecond}, 0, true}, // 20 tokens in 31 ms: 1.55 ms
		{Targets{TPOT: time.Millisecond}, MissedTPOT, false},
		{Targets{ITL: 2 * time.Millisecond}, 0, true},
		{Targets{ITL: time.Millisecond}, 0, false},
	} {
		p := newSessionWithTargets(c.targets)
		p.engine(event.CapQueue | event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		p.token(31*ms, 1, 20)
		if got := p.request(t, 1).Misses(p.now); got != 0 {
			t.Errorf("%+v: a running request misses %04b", c.targets, got)
		}
		p.state(0, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 20})
		if got := p.request(t, 1).Misses(p.now); got != c.misses {
			t.Errorf("%+v: misses %04b, want %04b", c.targets, got, c.misses)
		}
		if g := p.store.Snapshot().Latency.Goodput; (g.V > 0) != c.good {
			t.Errorf("%+v: goodput %+v", c.targets, g)
		}
	}
}

// TestTargetsOfUnstreamedAnswer checks that an answer that came as a whole is judged by its end.
func TestTargetsOfUnstreamedAnswer(t *testing.T) {
	for target, good := range map[time.Duration]bool{40 * time.Millisecond: true, 30 * time.Millisecond: false} {
		p := newSessionWithTargets(Targets{TTFT: target, TPOT: 10 * time.Millisecond})
		p.engine(event.CapQueue | event.CapTokens)
		p.state(0, 1, event.StateQueued, nil)
		p.state(31*ms, 1, event.StateFinished, &event.Outcome{Prompt: 3, Generated: 20})
		if g := p.store.Snapshot().Latency.Goodput; (g.V > 0) != good {
			t.Errorf("target %v: goodput %+v", target, g)
		}
	}
}

// TestMissedTargetsAreAnInsight checks that an engine whose requests miss a target for ITL or E2EL is not healthy.
func TestMissedTargetsAreAnInsight(t *testing.T) {
	for _, c := range []struct {
		targets Targets
		want    verdict.Status
	}{
		{Targets{TTFT: time.Second, ITL: 50 * time.Millisecond, E2EL: time.Second}, verdict.Healthy},
		{Targets{TTFT: time.Second, ITL: 30 * time.Millisecond}, verdict.Degraded},
		{Targets{TTFT: time.Second, E2EL: 50 * time.Millisecond}, verdict.Degraded},
	} {
		p := newSessionWithTargets(c.targets)
		for id := range event.RequestID(6) {
			p.state(0, id+1, event.StateQueued, nil)
			p.token(20*ms, id+1, 1)
			p.token(40*ms, id+1, 1)
			p.state(0, id+1, event.StateFinished, &event.Outcome{Generated: 2})
		}
		if h := p.store.Snapshot().Health; h.Status != c.want {
			t.Errorf("%+v: %v %+v", c.targets, h.Status, h.Verdict)
		}
	}
}

// TestTargetsAsWritten checks that a target is the time that was written, to the nanosecond.
func TestTargetsAsWritten(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1m30s": 90 * time.Second, "1.5min": 90 * time.Second, "2h": 2 * time.Hour, "200 MS": 200 * time.Millisecond,
		"1025ms": 1025 * time.Millisecond, "4.1ms": 4100 * time.Microsecond,
	} {
		if got, err := ParseTargets("e2el=" + text); err != nil || got.E2EL != want {
			t.Errorf("%s is %v, %v", text, got.E2EL, err)
		}
	}
}

// FuzzTargets checks that targets are read back as they are written.
func FuzzTargets(f *testing.F) {
	for _, seed := range []string{"ttft=100ms,tpot=50ms", "itl<=1.5s, e2el < 2min", "ttft=", "ttft=1e9h", "=1s", "ttft==1s", "ttft=-1s", "ttft=1ns", "e2el=1m30s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTargets(text)
		if err != nil {
			return
		}
		again, err := ParseTargets(got.String())
		if err != nil || again != got || !got.Any() {
			t.Errorf("%q is %+v, written as %q, read as %+v, %v", text, got, got.String(), again, err)
		}
	})
}
