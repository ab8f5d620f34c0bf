package alert

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

const sec = event.Time(time.Second)

// rule parses one rule.
func rule(t *testing.T, fields map[string]any) []Rule {
	t.Helper()
	rules, err := ParseRules([]map[string]any{fields})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// slow returns a snapshot with a p99 TTFT of the last minute, none if p99 is 0.
func slow(now event.Time, p99 time.Duration) *store.Snapshot {
	s := store.Empty()
	s.Now, s.Engine.Name = now, "demo"
	if p99 > 0 {
		s.Latency.Of[store.TTFT][metric.Minute] = metric.Summary{Count: 10, P99: int64(p99)}
	}
	return s
}

func TestRuleStates(t *testing.T) {
	w := NewWatch("", rule(t, map[string]any{"name": "slow", "when": "ttft_p99 > 500ms", "for": "10s"}))
	for i, step := range []struct {
		at    int
		p99   time.Duration
		state State
		since int
		want  string
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
		var messages []string
		for _, c := range w.Evaluate(slow(event.Time(step.at)*sec, step.p99)) {
			messages = append(messages, c.Message())
		}
		got := w.States()[0]
		if got.State != step.state || got.Since != event.Time(step.since)*sec || strings.Join(messages, "; ") != step.want {
			t.Errorf("step %d: %v since %v, messages %q; want %v since %d s, %q", i, got.State, time.Duration(got.Since), messages, step.state, step.since, step.want)
		}
	}
}

func TestBackwardTime(t *testing.T) {
	w := NewWatch("", rule(t, map[string]any{"name": "slow", "when": "ttft_p99 > 500ms", "for": "10s"}))
	w.Evaluate(slow(100*sec, time.Second))
	if w.Evaluate(slow(50*sec, time.Second)); len(w.Evaluate(slow(55*sec, time.Second))) != 0 {
		t.Error("fires before the condition has held long enough")
	}
	if len(w.Evaluate(slow(60*sec, time.Second))) != 1 {
		t.Error("does not fire after going back in a recording")
	}
}

func TestConditions(t *testing.T) {
	s := slow(0, 600*time.Millisecond)
	s.Counts.Running, s.KV.Usage = 4, event.DerivedValue(0.93)
	s.Host.Engine.RSS, s.Host.CPU = event.MeasuredValue(9e9), event.Absent(event.NotReported)
	s.Host.GPUs = []event.GPU{{Power: event.MeasuredValue(70)}, {Util: event.MeasuredValue(.9), Power: event.MeasuredValue(690), Temperature: event.MeasuredValue(83)}}
	for text, want := range map[string]bool{
		"gpu1_power > 600": true, "gpu0_power > 600": false, "gpu1 > 80%": true, "gpu0 >= 0": false, "gpu1_temperature >= 83": true, "gpu2_power >= 0": false, "gpu_power >= 760": true,
		"ttft_p99 > 500ms": true, "ttft_p99 > 0.6s": false, "TTFT_P99>=0.6s": true, "ttft_p99 < 1 min": true,
		"ttft_p99 > 500 ms and running >= 4": true, "ttft_p99 > 500ms AND running > 4": false, "kv > 90%": true, "kv>0.95": false, "kv <= 93 %": true,
		"rss > 8GB": true, "rss > 9 GiB": false, "cpu < 1": false, "cpu >= 0": false, "itl_p50 >= 0s": false, "failed <= 0": true,
	} {
		c, err := parseCondition(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, _, _ := c.evaluate(s, metric.Minute); got != want {
			t.Errorf("%q holds: %v", text, got)
		}
	}
}

func TestErrorsNameTheField(t *testing.T) {
	ok := map[string]any{"name": "a", "when": "queued > 3"}
	with := func(field string, v any) []map[string]any {
		m := map[string]any{"name": "a", "when": "queued > 3"}
		if m[field] = v; v == nil {
			delete(m, field)
		}
		return []map[string]any{m}
	}
	for want, tables := range map[string][]map[string]any{
		`alert 1: name: missing`:                                                                    with("name", nil),
		`alert 1: name: must have`:                                                                  with("name", "\u200b\n"),
		`alert "a": when: missing`:                                                                  with("when", nil),
		`alert "a": when: must be a string in quotes, not "3"`:                                      with("when", int64(3)),
		`alert "a": when: unknown measure "gpu_p99": use one of ttft_p50`:                           with("when", "gpu_p99 > 3"),
		`alert "a": when: unknown measure "gpu1_launches": use one of`:                              with("when", "gpu1_launches > 3"),
		`alert "a": when: cannot compare ttft_p99 with "500": write a value such as ttft_p99>500ms`: with("when", "ttft_p99 > 500"),
		`alert "a": when: cannot compare queued with "5GB": write a value such as queued>100`:       with("when", "queued > 5GB"),
		`alert "a": when: unknown comparison "=="`:                                                  with("when", "queued == 5"),
		`alert "a": when: "or": expected "and"`:                                                     with("when", "queued > 5 or kv > 1"),
		`alert "a": when: "queued >": write a measure`:                                              with("when", "queued >"),
		`alert "a": when: empty`:                                                                    with("when", " "),
		`alert "a": when: more than 8`:                                                              with("when", strings.Repeat("kv > 1 and ", 9)+"kv > 1"),
		`alert "a": for: "soon": must be a time`:                                                    with("for", "soon"),
		`alert "a": window: "5m": must be`:                                                          with("window", "5m"),
		`alert "a": run: must be a list`:                                                            with("run", "notify-send"),
		`alert "a": run: "3": must be`:                                                              with("run", []any{"echo", int64(3)}),
		`alert "a": unknown field "until"`:                                                          with("until", "x"),
		`alert "a": name: another alert has the same name`:                                          {ok, ok},
		fmt.Sprintf("%d alerts: at most %d are allowed", MaxRules+1, MaxRules):                      make([]map[string]any, MaxRules+1),
	} {
		if _, err := ParseRules(tables); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestEveryMeasureIsARule parses every example and evaluates it on an empty snapshot.
func TestEveryMeasureIsARule(t *testing.T) {
	names := map[string]bool{}
	for _, m := range measures {
		if names[m.Name] {
			t.Errorf("two measures are named %s", m.Name)
		}
		names[m.Name] = true
		c, err := parseCondition(m.Example())
		if err != nil || m.Means == "" {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		if holds, value, _ := c.evaluate(store.Empty(), metric.Session); holds || value == "" {
			t.Errorf("%s holds on an empty snapshot (%q)", m.Name, value)
		}
		if again, err := parseCondition(strings.NewReplacer(" tok/s", "").Replace(c.String())); err != nil || again.String() != c.String() {
			t.Errorf("%s is written as %s: %v", m.Name, c, err)
		}
	}
}

// TestDocsDefineMeasures checks that the documentation defines every measure; of latencies it lists the median.
func TestDocsDefineMeasures(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range measures {
		name := regexp.MustCompile("^lost_to_.*").ReplaceAllString(m.Name, "lost_to_KEY")
		if median := regexp.MustCompile("_(p95|p99|max|mean)$").ReplaceAllString(name, "_p50"); byName(median) != nil {
			name = median
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not define the measure %s", m.Name)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, m := range measures {
		f.Add(m.Example())
	}
	f.Add("kv > 5 % and rss <= 1e9B")
	f.Add("kv>1e999")
	f.Add(">>= \x00 µs")
	s := slow(0, time.Second)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCondition(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error has several lines: %v", text, err)
			}
			return
		}
		if len(c) == 0 || len(c) > maxTerms || c.String() == "" {
			t.Errorf("%q: %d terms", text, len(c))
		}
		c.evaluate(s, metric.Minute)
	})
}

// server returns a snapshot of a server that counts TTFT in buckets, and nothing else besides running requests.
func server(now event.Time, low, high time.Duration) *store.Snapshot {
	var w metric.WindowedBuckets
	w.Add(int64(now), 0, &event.Histogram{Count: 9, Sum: 9 * int64(low+high) / 2, Bounds: []int64{int64(low), int64(high)}, Counts: []uint64{0, 9, 0}})
	t := store.WindowedHistogram{Name: event.HistogramTTFT, BucketsView: w.View(int64(now))}
	s := store.Empty()
	s.Now, s.Engine.State, s.Engine.Caps = now, event.EngineReady, event.CapAggregates
	s.Aggregates = store.Aggregates{Aggregates: event.Aggregates{Running: event.ReportedValue(3)}, At: max(now, 1), Histograms: []store.WindowedHistogram{t}}
	return s
}

// TestServers: rules on servers read the server's histograms, hold only wherever in its bucket a percentile lies, and
// never hold on what the server does not report.
func TestServers(t *testing.T) {
	s := server(0, 400*time.Millisecond, 600*time.Millisecond)
	for text, want := range map[string]bool{
		"ttft_p99 > 400ms": true, "ttft_p99 > 399ms": true, "ttft_p99 > 500ms": false, "ttft_p99 <= 500ms": false, "ttft_p99 < 500ms": false,
		"ttft_p99 <= 600ms": true, "ttft_p99 < 600ms": false, "ttft_p99 < 601ms": true, "ttft_mean >= 500ms": true, "ttft_mean > 500ms": false, "ttft_mean <= 500ms": true,
		"running >= 3": true, "ttft_max > 1ns": false,
		"goodput < 0.5": false, "cancelled < 5": false, "failed < 5": false, "finished < 5": false, "stalls < 5": false, "queued < 5": false,
		"busy < 1": false, "itl_p99 < 1s": false, "kv < 1": false, "decode < 1e9": false, "ttps < 1e9": false,
	} {
		c, err := parseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, value, _ := c.evaluate(s, metric.Minute); got != want {
			t.Errorf("%q holds: %v (%s)", text, got, value)
		}
	}
	c, _ := parseCondition("ttft_p99 > 500ms")
	if _, value, _ := c.evaluate(s, metric.Minute); value != "between 400 ms and 600 ms: inconclusive" {
		t.Errorf("value %q", value)
	}
}

// TestRulesThatCannotFire: a rule on what is not reported says so once, after blockedFor, and one on what is not yet
// known does not.
func TestRulesThatCannotFire(t *testing.T) {
	rules, err := ParseRules([]map[string]any{
		{"name": "goodput", "when": "running > 1 and goodput < 0.5"}, {"name": "slow", "when": "ttft_p99 > 500ms", "window": "1s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w, messages := NewWatch("", rules), ""
	for now := range event.Time(30) {
		for _, c := range w.Evaluate(server(now*sec, 0, time.Second)) {
			messages += fmt.Sprintf("%d s: %s\n", now, c.Message())
		}
	}
	if want := "10 s: alert goodput cannot fire: goodput is not reported for what is watched\n"; messages != want {
		t.Errorf("%q, want %q", messages, want)
	}
}
