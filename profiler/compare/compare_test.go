package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/report"
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

func number(v float64) report.Number { return report.Number(event.MeasuredValue(v)) }

func side(t testing.TB, name string, reports ...*report.Report) *compare.Side {
	t.Helper()
	s, err := compare.NewSide(name, reports...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var options = compare.Options{Relative: compare.DefaultRelative}

// TestErrorRates bounds the error rates: equal engines are seldom called worse, and decoding that is 5 % slower is
// nearly always.
func TestErrorRates(t *testing.T) {
	eventtest.SkipUnderRace(t)
	e := &engine{rng: rand.New(rand.NewPCG(1, 2))}
	outcomes := map[compare.Outcome]int{}
	for range 200 {
		outcomes[compare.Sides(side(t, "a", e.report(10)), side(t, "b", e.report(10)), options).Outcome]++
	}
	t.Logf("of 200 comparisons of the same engine: %v", outcomes)
	if n := outcomes[compare.Regressed]; n > 5 {
		t.Errorf("%d of 200 comparisons of the same engine found a regression", n)
	}
	if n := outcomes[compare.NoWorse]; n < 100 {
		t.Errorf("only %d of 200 comparisons of the same engine came to a verdict", n)
	}
	slow := &engine{rng: e.rng, slower: 0.05}
	found := 0
	for range 100 {
		r := compare.Sides(side(t, "a", e.report(10)), side(t, "b", slow.report(10)), options)
		if i := slices.IndexFunc(r.Rows, func(row compare.Row) bool { return row.Metric == "tpot" }); r.Rows[i].Outcome == compare.Regressed {
			found++
		}
	}
	t.Logf("of 100 comparisons with decode 5 %% slower, %d found it", found)
	if found < 95 {
		t.Errorf("decoding that is 5 %% slower was found in %d of 100 comparisons", found)
	}
}

// TestIntervalCoverage checks that a 95 % interval contains the true difference about that often, also with few runs.
func TestIntervalCoverage(t *testing.T) {
	eventtest.SkipUnderRace(t)
	for _, runs := range []int{3, 5, 10} {
		rng := rand.New(rand.NewPCG(3, uint64(runs)))
		e, slow := &engine{rng: rng}, &engine{rng: rng, slower: 0.05}
		held := 0
		const trials = 200
		for range trials {
			r := compare.Sides(side(t, "a", e.report(runs)), side(t, "b", slow.report(runs)), options)
			for _, row := range r.Rows {
				if row.Metric == "tpot" && row.Low <= 0.05 && row.High >= 0.05 {
					held++
				}
			}
		}
		t.Logf("%d runs a side: %d of %d intervals hold the truth", runs, held, trials)
		if held < trials*88/100 {
			t.Errorf("%d runs a side: %d of %d intervals hold the truth", runs, held, trials)
		}
	}
}

func TestOutcomes(t *testing.T) {
	flat := func(tpot ...float64) *report.Report {
		r := &report.Report{SchemaVersion: report.SchemaVersion}
		for i, v := range tpot {
			r.Requests = append(r.Requests, report.Request{ID: event.RequestID(i + 1), State: "finished", Prompt: report.Measured(8), TPOT: number(v)})
		}
		return r
	}
	few, noisy := flat(0.01, 0.01), flat(0.010, 0.014, 0.008, 0.012, 0.007, 0.013)
	steady := flat(0.0100, 0.0101, 0.0100, 0.0099, 0.0100, 0.0101)
	slower := flat(0.0110, 0.0111, 0.0110, 0.0109, 0.0110, 0.0111)
	for name, c := range map[string]struct {
		base, next *report.Report
		want       compare.Outcome
	}{
		"same":        {steady, steady, compare.NoWorse},
		"slower":      {steady, slower, compare.Regressed},
		"faster":      {slower, steady, compare.NoWorse},
		"too few":     {few, few, compare.Unclear},
		"too noisy":   {noisy, noisy, compare.Unclear},
		"no requests": {flat(), steady, compare.Unclear},
	} {
		if got := compare.Sides(side(t, "a", c.base), side(t, "b", c.next), options); got.Outcome != c.want {
			t.Errorf("%s: %v, want %v: %+v", name, got.Outcome, c.want, got.Rows)
		}
	}
	tolerant := options
	tolerant.Practical = map[string]float64{"tpot": 0.002}
	if got := compare.Sides(side(t, "a", steady), side(t, "b", slower), tolerant); got.Outcome != compare.NoWorse {
		t.Errorf("1 ms is below the practical difference of 2 ms: %v", got.Outcome)
	}
	ungated := options
	ungated.Gates = []string{"ttft"}
	if got := compare.Sides(side(t, "a", steady), side(t, "b", slower), ungated); got.Outcome != compare.Unclear {
		t.Errorf("no gating metric was measured: %v", got.Outcome)
	}
}

func TestLowerRatesAreWorse(t *testing.T) {
	rates := func(v float64) *report.Report {
		r := &report.Report{SchemaVersion: report.SchemaVersion}
		for i := range 8 {
			r.Requests = append(r.Requests, report.Request{ID: event.RequestID(i + 1), State: "finished", DecodeRate: number(v + float64(i)/100)})
		}
		return r
	}
	o := options
	o.Gates = []string{"decode"}
	if got := compare.Sides(side(t, "a", rates(100)), side(t, "b", rates(80)), o); got.Outcome != compare.Regressed {
		t.Errorf("80 tokens/s instead of 100: %v", got.Outcome)
	}
	if got := compare.Sides(side(t, "a", rates(80)), side(t, "b", rates(100)), o); got.Outcome != compare.NoWorse {
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

func TestWriters(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	e, slow := &engine{rng: rng}, &engine{rng: rng, slower: 0.1}
	r := compare.Sides(side(t, "base|\x1b[31m<b>", e.report(5)), side(t, "new", slow.report(5)), options)
	var text, markdown, doc bytes.Buffer
	for _, err := range []error{r.WriteText(&text), r.WriteMarkdown(&markdown), r.WriteJSON(&doc)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"REGRESSED: new against base", "tpot", "no verdict", "TTFT components", "prompt"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, &text)
		}
	}
	if strings.ContainsRune(text.String()+markdown.String(), 0x1b) {
		t.Error("an escape sequence was not removed")
	}
	if !strings.Contains(markdown.String(), "### llmtop: regressed") || !strings.Contains(markdown.String(), "|---|---|") {
		t.Errorf("markdown:\n%s", &markdown)
	}
	var back struct {
		Outcome string
		Metrics []map[string]any
	}
	if err := json.Unmarshal(doc.Bytes(), &back); err != nil || back.Outcome != "regressed" || len(back.Metrics) != len(r.Rows) {
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
	sums := &report.Report{Engine: report.EngineInfo{Name: "vLLM"}, Reported: &report.Aggregates{}, Requests: []report.Request{{State: "finished"}}}
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
