package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// engine simulates runs with the noise of a busy machine: each run is off by 1 %, each request by 3 %, and one request
// in twenty is delayed.
type engine struct {
	rng    *rand.Rand
	slower float64 // decode, relative
}

func (e *engine) run(first event.RequestID) []report.Request {
	drift := 1 + 0.01*e.rng.NormFloat64()
	var out []report.Request
	for i := range 12 {
		tokens := 16 << (i % 3)
		noise := func() float64 {
			v := drift * (1 + 0.03*e.rng.NormFloat64())
			if e.rng.IntN(20) == 0 {
				v *= 1.5
			}
			return v
		}
		ttft, tpot := 0.004*float64(tokens)/16*noise(), 0.0008*(1+e.slower)*noise()
		out = append(out, report.Request{
			ID: first + event.RequestID(i), Label: fmt.Sprint("prompt of ", tokens), State: "finished", Prompt: report.Measured(float64(tokens)), Generated: 101,
			TTFT: number(ttft), TPOT: number(tpot), E2EL: number(ttft + 100*tpot), DecodeRate: number(1 / tpot),
			Parts: report.Parts{{Name: "prompt", Time: number(ttft * 0.9)}, {Name: "other", Time: number(ttft * 0.1)}},
		})
	}
	return out
}

func (e *engine) report(runs int) *report.Report {
	r := &report.Report{SchemaVersion: report.SchemaVersion, Configuration: map[string]string{"threads": "2"}, Bench: &report.Bench{}}
	point := report.Point{Name: "1 at a time", Concurrency: 1}
	for i := range runs {
		requests := e.run(event.RequestID(100*i + 1))
		var ids []event.RequestID
		for _, q := range requests {
			ids = append(ids, q.ID)
		}
		r.Requests = append(r.Requests, requests...)
		point.Runs = append(point.Runs, report.Run{Requests: ids})
	}
	r.Bench.Points = []report.Point{point}
	return r
}

func number(v float64) event.Reading { return event.MeasuredValue(v) }

func side(t testing.TB, name string, reports ...*report.Report) *compare.Side {
	t.Helper()
	s, err := compare.NewSide(name, reports...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var options = compare.Options{Relative: 0.03}

// each returns a report per value, with one request that set completes.
func each(set func(q *report.Request, v float64), values ...float64) (runs []*report.Report) {
	for _, v := range values {
		q := report.Request{ID: 1, State: "finished", Prompt: report.Measured(8)}
		set(&q, v)
		runs = append(runs, &report.Report{SchemaVersion: report.SchemaVersion, Requests: []report.Request{q}})
	}
	return runs
}

func tpots(values ...float64) []*report.Report {
	return each(func(q *report.Request, v float64) { q.TPOT = number(v) }, values...)
}

// TestOutcomes checks the outcome of each kind of data, and that it comes with its number, its threshold or its reason.
func TestOutcomes(t *testing.T) {
	noisy := tpots(0.010, 0.014, 0.008, 0.012, 0.007, 0.013)
	steady, slower := tpots(0.0100, 0.0101, 0.0100, 0.0099, 0.0100, 0.0101), tpots(0.0110, 0.0111, 0.0110, 0.0109, 0.0110, 0.0111)
	gate := func(name string) compare.Options {
		o := options
		o.Gates = []string{name}
		return o
	}
	tolerant := gate("tpot")
	tolerant.Practical = map[string]float64{"tpot": 0.002}
	cold := each(func(q *report.Request, v float64) { q.TTFT, q.Cold = number(v), true }, 1, 1, 1, 1, 1)
	for name, c := range map[string]struct {
		base, next []*report.Report
		options    compare.Options
		want       compare.Outcome
		summary    string
	}{
		"same":         {steady, steady, gate("tpot"), compare.NoWorse, "tpot +0.0 % (95 %: "},
		"slower":       {steady, slower, gate("tpot"), compare.Worse, "tpot +10.0 % (95 %: "},
		"faster":       {slower, steady, gate("tpot"), compare.Better, "tpot -9.1 % (95 %: "},
		"tolerated":    {steady, slower, tolerant, compare.NoWorse, "threshold 20.0 %)"},
		"one run":      {steady[:1], slower[:1], gate("tpot"), compare.Inconclusive, "tpot +10.0 % (threshold 3.0 %): too few runs: a side has 1"},
		"too noisy":    {noisy, noisy, gate("tpot"), compare.Inconclusive, "): the interval includes changes beyond the threshold"},
		"no runs":      {nil, steady, gate("tpot"), compare.Inconclusive, "tpot: the base has no finished requests"},
		"not reported": {steady, steady, gate("ttft"), compare.Inconclusive, "ttft: not reported by the base (6 requests)"},
		"no default":   {steady, steady, options, compare.Inconclusive, "ttft: not reported by the base (6 requests)"},
		"cold":         {steady, cold, gate("e2el"), compare.Inconclusive, "e2el: not reported by the base (6 requests)"},
		"cold on both": {cold, cold, gate("ttft"), compare.Inconclusive, "ttft: the base has it only of cold requests (5 of 5)"},
	} {
		got := compare.Sides(side(t, "a", c.base...), side(t, "b", c.next...), c.options)
		if got.Outcome != c.want || !strings.Contains(got.Summary, c.summary) {
			t.Errorf("%s: %v, %q, want %v, %q: %+v", name, got.Outcome, got.Summary, c.want, c.summary, got.Rows)
		}
	}
}

// TestGateWithoutPoint checks that a gate of a point that only one side has is not dropped.
func TestGateWithoutPoint(t *testing.T) {
	e := &engine{rng: rand.New(rand.NewPCG(1, 2))}
	base := e.report(5)
	next := *base
	next.Bench = &report.Bench{Points: slices.Clone(base.Bench.Points)}
	other := next.Bench.Points[0]
	other.Name = "4 at a time"
	for _, sides := range [][2][]report.Point{{base.Bench.Points, {next.Bench.Points[0], other}}, {{base.Bench.Points[0], other}, next.Bench.Points}} {
		base.Bench.Points, next.Bench.Points = sides[0], sides[1]
		r := compare.Sides(side(t, "a", base), side(t, "b", &next), options)
		if r.Outcome != compare.Inconclusive || !strings.HasPrefix(r.Summary, "ttft at 4 at a time: the ") {
			t.Errorf("%v: %s", r.Outcome, r.Summary)
		}
		var text bytes.Buffer
		if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "\ne2el at 4 at a time: the ") {
			t.Errorf("the text lacks the reason of another gate:\n%s", &text)
		}
	}
}

// TestGateWithoutDataNeedsNoRuns checks that no more runs are advised if a gate has no data, and which gates have none.
func TestGateWithoutDataNeedsNoRuns(t *testing.T) {
	noisy := each(func(q *report.Request, v float64) {
		q.TTFT, q.TPOT, q.E2EL, q.Cold = number(v), number(v), number(v), true
	}, 1, 1.4, 0.8, 1.2, 0.7, 1.3)
	r := compare.Sides(side(t, "a", noisy...), side(t, "b", noisy...), options)
	gates, others, onlyCold := r.NoData()
	if _, ok := r.NeedsRuns(); ok || r.Outcome != compare.Inconclusive || !slices.Equal(gates, []string{"ttft", "e2el"}) || !slices.Equal(others, []string{"tpot"}) || !onlyCold {
		t.Errorf("%v, more runs %v: no data of %q, of cold requests only: %v; others %q", r.Outcome, ok, gates, onlyCold, others)
	}
	bench := *noisy[0]
	bench.Bench = &report.Bench{Points: []report.Point{{Name: "cold", Runs: []report.Run{{Requests: []event.RequestID{bench.Requests[0].ID}}}}}}
	if gates, _, onlyCold := compare.Sides(side(t, "a", &bench), side(t, "b", &bench), options).NoData(); len(gates) != 2 || onlyCold {
		t.Errorf("a cold point: no data of %q, warm requests advised: %v", gates, onlyCold)
	}
	o := options
	o.Gates = []string{"tpot"}
	r = compare.Sides(side(t, "a", noisy...), side(t, "b", noisy...), o)
	if gates, _, _ := r.NoData(); len(gates) > 0 {
		t.Errorf("no data of %q", gates)
	}
	if _, ok := r.NeedsRuns(); !ok || r.Outcome != compare.Inconclusive {
		t.Errorf("%v, more runs %v", r.Outcome, ok)
	}
}

// TestWorseTakesPrecedence checks that a worse gate decides although another one is inconclusive or better.
func TestWorseTakesPrecedence(t *testing.T) {
	both := func(ttft float64) []*report.Report {
		return each(func(q *report.Request, v float64) { q.TTFT, q.TPOT = number(ttft*v), number(0.01*v/ttft) }, 1, 1.01, 1, 0.99, 1)
	}
	r := compare.Sides(side(t, "a", both(1)...), side(t, "b", both(2)...), options)
	if r.Outcome != compare.Worse || !strings.HasPrefix(r.Summary, "ttft +100.0 % ") {
		t.Errorf("%v: %s", r.Outcome, r.Summary)
	}
}

// TestRunsInTurns checks that pairs are found by the start of the runs, in any order of the files, and that they see
// what a drift hides from sides measured one after the other.
func TestRunsInTurns(t *testing.T) {
	var base, next []*report.Report
	for i := range 6 {
		pair := tpots(0.01*(1+0.1*float64(i)), 0.0106*(1+0.1*float64(i)))
		first, second := time.Unix(int64(2*i), 0), time.Unix(int64(2*i+1), 0)
		if i%2 == 1 {
			first, second = second, first
		}
		pair[0].Started, pair[1].Started = first, second
		base, next = append([]*report.Report{pair[0]}, base...), append(next, pair[1])
	}
	o := options
	o.Gates = []string{"tpot"}
	if r := compare.Sides(side(t, "a", base...), side(t, "b", next...), o); r.Outcome != compare.Worse || !r.Rows[0].InTurns {
		t.Errorf("in turns: %v: %+v", r.Outcome, r.Rows[0])
	}
	for _, r := range next {
		r.Started = r.Started.Add(time.Hour)
	}
	if r := compare.Sides(side(t, "a", base...), side(t, "b", next...), o); r.Outcome != compare.Inconclusive || r.Rows[0].InTurns {
		t.Errorf("one after the other: %v: %+v", r.Outcome, r.Rows[0])
	}
}

func TestLowerRatesAreWorse(t *testing.T) {
	rates := func(v float64) []*report.Report {
		return each(func(q *report.Request, v float64) { q.DecodeRate = number(v) }, v, v+0.01, v-0.01, v+0.01, v)
	}
	o := options
	o.Gates = []string{"decode"}
	if got := compare.Sides(side(t, "a", rates(100)...), side(t, "b", rates(80)...), o); got.Outcome != compare.Worse {
		t.Errorf("80 tokens/s instead of 100: %v", got.Outcome)
	}
	if got := compare.Sides(side(t, "a", rates(80)...), side(t, "b", rates(100)...), o); got.Outcome != compare.Better {
		t.Errorf("100 tokens/s instead of 80: %v", got.Outcome)
	}
}

func TestDifferentConditions(t *testing.T) {
	e := &engine{rng: rand.New(rand.NewPCG(1, 2))}
	a, b := e.report(3), e.report(3)
	b.Configuration = map[string]string{"threads": "1"}
	r := compare.Sides(side(t, "a", a), side(t, "b", b), options)
	if len(r.Differences) != 1 || r.Differences[0].Name != "--threads" {
		t.Errorf("differences: %v", r.Differences)
	}
	if _, err := compare.NewSide("both", a, b); err == nil {
		t.Error("reports of different settings made one side")
	}
}

// TestUnrecordedConditions checks that a side without settings is one difference, and that conditions that neither side
// has are named, as those of old recordings.
func TestUnrecordedConditions(t *testing.T) {
	cpu := "a CPU"
	known := &report.Report{Machine: report.Machine{CPU: &cpu}, Configuration: map[string]string{"threads": "2", "seed": "1", "theme": "light"}}
	old := &report.Report{Configuration: map[string]string{"replay": "old.llmtop"}}
	r := compare.Sides(side(t, "a", known), side(t, "b", old), options)
	want := []compare.Difference{{Name: "settings", Base: "2 recorded", New: "not recorded"}, {Name: "CPU", Base: cpu, New: "not recorded"}}
	if !slices.Equal(r.Differences, want) {
		t.Errorf("differences: %v, want %v", r.Differences, want)
	}
	r = compare.Sides(side(t, "a", old), side(t, "b", old), options)
	const note = "not checked, because neither side has them recorded: model, CPU, OS, settings"
	if len(r.Differences) > 0 || !slices.Contains(r.Notes, note) {
		t.Errorf("differences: %v, notes: %q", r.Differences, r.Notes)
	}
}

// TestDisturbances checks that the comparison names what took time on one side.
func TestDisturbances(t *testing.T) {
	e := &engine{rng: rand.New(rand.NewPCG(1, 2))}
	calm, a, b := e.report(3), e.report(3), e.report(3)
	lost := func(c verdict.Cause, share float64) report.Loss {
		return report.Loss{Text: verdict.Causes[c].Text, Observed: event.DerivedValue(share)}
	}
	a.Causes = []report.Loss{lost(verdict.OtherProcesses, .2), lost(verdict.CPUQuota, .3)}
	b.Causes = []report.Loss{lost(verdict.OtherProcesses, .4)}
	r := compare.Sides(side(t, "before", calm), side(t, "after", a, b, calm), options)
	want := []string{
		"after lost up to 40 % of the time of requests, in 2 of 3 reports: other processes used the cores",
		"after lost up to 30 % of the time of requests, in 1 of 3 reports: held at the CPU quota of its control group",
	}
	if n := len(r.Notes); n < 2 || !slices.Equal(r.Notes[n-2:], want) {
		t.Errorf("notes %q, want %q at their end", r.Notes, want)
	}
	if r := compare.Sides(side(t, "before", b), side(t, "after", calm), options); !slices.Contains(r.Notes, "before lost 40 % of the time of requests: other processes used the cores") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestWriters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	e, slow := &engine{rng: rng}, &engine{rng: rng, slower: 0.1}
	r := compare.Sides(side(t, "base|\x1b[31m<b>", e.report(9)), side(t, "new", slow.report(9)), options)
	var text, markdown, doc bytes.Buffer
	for _, err := range []error{r.WriteText(&text), r.WriteMarkdown(&markdown), r.WriteJSON(&doc)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"WORSE: tpot +", "\nnew against base", "TTFT components", "prompt"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, &text)
		}
	}
	if strings.ContainsRune(text.String()+markdown.String(), 0x1b) {
		t.Error("an escape sequence was not removed")
	}
	if !strings.Contains(markdown.String(), "### llmtop: worse\n\ntpot +") || !strings.Contains(markdown.String(), "|---|---|") {
		t.Errorf("markdown:\n%s", &markdown)
	}
	var back struct {
		Outcome string
		Metrics []map[string]any
	}
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back.Outcome != "worse" || len(back.Metrics) != len(r.Rows) {
		t.Errorf("JSON: %v\n%s", err, &doc)
	}
	t.Log("\n" + text.String())
}

// TestOddValues checks that any number that a document can hold is accepted.
func TestOddValues(t *testing.T) {
	odd := &report.Report{SchemaVersion: report.SchemaVersion}
	for i, v := range []float64{0, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-300, 1e300} {
		odd.Requests = append(odd.Requests, report.Request{ID: event.RequestID(i), State: "finished", TTFT: number(v), TPOT: number(v)})
	}
	r := compare.Sides(side(t, "a", odd), side(t, "b", odd), options)
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Errorf("write JSON: %v", err)
	}
}

// TestAggregatesAreNotCompared: runs are compared request by request; a report without per-request metrics is refused
// in one line.
func TestAggregatesAreNotCompared(t *testing.T) {
	sums := &report.Report{Engine: report.EngineInfo{Name: "vLLM"}, Reported: report.Aggregates{Numbers: make([]store.ServerNumber, 1)}, Requests: []report.Request{{State: "finished"}}}
	if _, err := compare.NewSide("a.json", sums); err == nil || !strings.Contains(err.Error(), "vLLM reports aggregate metrics only") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a server without per-request metrics: %v", err)
	}
	sums.Requests[0].TPOT = number(0.01) // polled from a slot, or a probe
	if _, err := compare.NewSide("a.json", sums); err != nil {
		t.Error(err)
	}
	several := &report.Report{Fleet: &report.Fleet{Replicas: make([]report.Replica, 3)}}
	if _, err := compare.NewSide("a.json", several); err == nil || !strings.Contains(err.Error(), "has 3 engines") {
		t.Errorf("several engines: %v", err)
	}
}

// TestRandomConditions checks that what a benchmark draws at random, and where the engine was, does not keep its reports
// from being compared, neither those of a side nor the sides.
func TestRandomConditions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	drawn := func() (out []*report.Report) {
		for range 2 {
			r := (&engine{rng: rng}).report(1)
			for _, name := range []string{"prompt-salt", "to", "listen", "attach", "otlp", "match"} {
				r.Configuration[name] = fmt.Sprint(rng.Uint32())
			}
			out = append(out, r)
		}
		return out
	}
	if r := compare.Sides(side(t, "a", drawn()...), side(t, "b", drawn()...), options); len(r.Differences) > 0 {
		t.Errorf("differences: %v", r.Differences)
	}
	other := drawn()
	other[1].Configuration["prompt-cache"] = "true"
	if _, err := compare.NewSide("a", other...); err == nil || !strings.Contains(err.Error(), "--prompt-cache") {
		t.Errorf("with and without the prompt cache: %v", err)
	}
}

// TestPromptsOfRandomWords checks that prompts of random words, whose tokens differ from run to run, count as the same
// prompt: all requests are compared, not the few that happen to have as many tokens.
func TestPromptsOfRandomWords(t *testing.T) {
	runs := func(slower float64, tokens ...int) (out []*report.Report) {
		for i, n := range tokens {
			r := &report.Report{SchemaVersion: report.SchemaVersion, Started: time.Unix(int64(i), 0)}
			for j, prompt := range []int{100, n} { // one in two happens to have 100 tokens, and they are not slower
				tpot := 0.01
				if j == 1 {
					tpot *= slower
				}
				r.Requests = append(r.Requests, report.Request{
					ID: event.RequestID(j + 1), Label: report.ApproximateLength + "100 tokens", State: "finished", Prompt: report.Measured(float64(prompt)), TPOT: number(tpot),
				})
			}
			out = append(out, r)
		}
		return out
	}
	r := compare.Sides(side(t, "a", runs(1, 97, 103, 99, 101, 98)...), side(t, "b", runs(2, 102, 96, 95, 104, 105)...), options)
	row := r.Rows[slices.IndexFunc(r.Rows, func(row compare.Row) bool { return row.Metric == "tpot" })]
	if row.Change < 0.4 || row.Change > 0.6 {
		t.Errorf("change %v of medians of 10 and 15 ms", row.Change)
	}
}

// TestWideIntervalIsNotMeasurable checks that an interval which says nothing is not printed as one.
func TestWideIntervalIsNotMeasurable(t *testing.T) {
	e := &engine{rng: rand.New(rand.NewPCG(1, 2))}
	base, next := e.report(5), e.report(5)
	for i := range next.Requests {
		next.Requests[i].TTFT.V *= math.Pow(30, float64(next.Requests[i].ID/100))
	}
	r := compare.Sides(side(t, "a", base), side(t, "b", next), options)
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if row := regexp.MustCompile(`(?m)^.*ttft .*$`).FindString(text.String()); !strings.Contains(row, "not measurable") || strings.Contains(row, "to +") {
		t.Errorf("the row of TTFT: %q", row)
	}
	if n := strings.Count(strings.ToLower(text.String()), "inconclusive"); n != 1 {
		t.Errorf("%d times inconclusive:\n%s", n, &text)
	}
}
