package alert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

const sec = event.Time(time.Second)

// rule makes one of its fields.
func rule(t *testing.T, fields map[string]any) []Rule {
	t.Helper()
	rules, err := ParseRules([]map[string]any{fields})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// slow is a snapshot with a p99 TTFT of the last minute, none if it is 0.
func slow(now event.Time, p99 time.Duration) *store.Snapshot {
	s := &store.Snapshot{Now: now}
	if p99 > 0 {
		s.Latency.TTFT[metric.Minute] = metric.Summary{Count: 10, P99: int64(p99)}
	}
	return s
}

func TestARuleGoesThroughItsStates(t *testing.T) {
	w := NewWatch("", rule(t, map[string]any{"name": "slow", "when": "ttft_p99 > 500ms", "for": "10s"}))
	for i, step := range []struct {
		at    int
		p99   time.Duration
		state State
		since int
		tells string
	}{
		{0, 0, Quiet, 0, ""},
		{1, 600 * time.Millisecond, Pending, 1, ""},
		{5, 400 * time.Millisecond, Quiet, 5, ""},
		{6, 600 * time.Millisecond, Pending, 6, ""},
		{15, 700 * time.Millisecond, Pending, 6, ""},
		{16, 700 * time.Millisecond, Firing, 6, "alert slow is firing: 700 ms (ttft_p99 > 500 ms for 10s)"},
		{20, 800 * time.Millisecond, Firing, 6, ""},
		{21, 0, Resolved, 21, "alert slow has resolved: not yet (ttft_p99 > 500 ms)"},
		{22, 600 * time.Millisecond, Pending, 22, ""},
		{23, 500 * time.Millisecond, Resolved, 23, ""},
	} {
		var told []string
		for _, c := range w.Look(slow(event.Time(step.at)*sec, step.p99)) {
			told = append(told, c.Words())
		}
		got := w.States()[0]
		if got.State != step.state || got.Since != event.Time(step.since)*sec || strings.Join(told, "; ") != step.tells {
			t.Errorf("step %d: %v since %v, told %q; want %v since %d s, %q", i, got.State, time.Duration(got.Since), told, step.state, step.since, step.tells)
		}
	}
}

func TestTimeThatRunsBack(t *testing.T) {
	w := NewWatch("", rule(t, map[string]any{"name": "slow", "when": "ttft_p99 > 500ms", "for": "10s"}))
	w.Look(slow(100*sec, time.Second))
	if w.Look(slow(50*sec, time.Second)); len(w.Look(slow(55*sec, time.Second))) != 0 {
		t.Error("fires before the condition has held for long enough")
	}
	if len(w.Look(slow(60*sec, time.Second))) != 1 {
		t.Error("does not fire after a recording was wound back")
	}
}

func TestConditions(t *testing.T) {
	s := slow(0, 600*time.Millisecond)
	s.Throughput.Running, s.KV.Usage = 4, event.From(0.93)
	s.Host.Engine.RSS, s.Host.CPU = event.Of(9e9), event.Absent(event.NotReported)
	for text, want := range map[string]bool{
		"ttft_p99 > 500ms": true, "ttft_p99 > 0.6s": false, "TTFT_P99>=0.6s": true, "ttft_p99 < 1 min": true,
		"ttft_p99 > 500 ms and running >= 4": true, "ttft_p99 > 500ms AND running > 4": false, "kv > 90%": true, "kv>0.95": false, "kv <= 93 %": true,
		"rss > 8GB": true, "rss > 9 GiB": false, "cpu < 1": false, "cpu >= 0": false, "itl_p50 >= 0s": false, "failed <= 0": true,
	} {
		c, err := parseCondition(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, _ := c.look(s, metric.Minute); got != want {
			t.Errorf("%q holds: %v", text, got)
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	ok := map[string]any{"name": "a", "when": "queued > 3"}
	with := func(field string, v any) []map[string]any {
		m := map[string]any{"name": "a", "when": "queued > 3"}
		if m[field] = v; v == nil {
			delete(m, field)
		}
		return []map[string]any{m}
	}
	for want, tables := range map[string][]map[string]any{
		`alert 1: name: missing`:                                        with("name", nil),
		`alert 1: name: must have`:                                      with("name", "\x1b\n"),
		`alert "a": when: missing`:                                      with("when", nil),
		`alert "a": when: must be a text in quotes, not "3"`:            with("when", int64(3)),
		`alert "a": when: unknown measure "gpu_p99"; known: ttft_p50`:   with("when", "gpu_p99 > 3"),
		`alert "a": when: "500": the limit of ttft_p99 must be a time`:  with("when", "ttft_p99 > 500"),
		`alert "a": when: "5GB": the limit of queued must be a number`:  with("when", "queued > 5GB"),
		`alert "a": when: "==": a comparison`:                           with("when", "queued == 5"),
		`alert "a": when: "or": after a limit`:                          with("when", "queued > 5 or kv > 1"),
		`alert "a": when: "queued >": a condition is a measure`:         with("when", "queued >"),
		`alert "a": when: empty`:                                        with("when", " "),
		`alert "a": when: more than 8`:                                  with("when", strings.Repeat("kv > 1 and ", 9)+"kv > 1"),
		`alert "a": for: "soon": must be a time`:                        with("for", "soon"),
		`alert "a": window: "5m": must be`:                              with("window", "5m"),
		`alert "a": run: must be a list`:                                with("run", "notify-send"),
		`alert "a": run: "3": must be`:                                  with("run", []any{"echo", int64(3)}),
		`alert "a": unknown field "until"`:                              with("until", "x"),
		`alert "a": name: another alert has it`:                         {ok, ok},
		fmt.Sprintf("%d alerts: there may be %d", MaxRules+1, MaxRules): make([]map[string]any, MaxRules+1),
	} {
		if _, err := ParseRules(tables); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Every measure can be read of a snapshot of nothing and be a rule.
func TestEveryMeasureIsARule(t *testing.T) {
	for _, m := range Measures() {
		c, err := parseCondition(m.Example)
		if err != nil || m.Means == "" {
			t.Errorf("%s: %v", m.Example, err)
			continue
		}
		if holds, value := c.look(&store.Snapshot{}, metric.Session); holds || value == "" {
			t.Errorf("%s holds of nothing (%q)", m.Example, value)
		}
		if again, err := parseCondition(strings.NewReplacer(" tok/s", "").Replace(c.String())); err != nil || again.String() != c.String() {
			t.Errorf("%s is written as %s: %v", m.Example, c, err)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, m := range Measures() {
		f.Add(m.Example)
	}
	f.Add("kv > 5 % and rss <= 1e9B")
	f.Add("kv>1e999")
	f.Add(">>= \x00 µs")
	s := slow(0, time.Second)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCondition(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error has two lines: %v", text, err)
			}
			return
		}
		if len(c) == 0 || len(c) > mostTerms || c.String() == "" {
			t.Errorf("%q: %d terms", text, len(c))
		}
		c.look(s, metric.Minute)
	})
}
