package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// TestSummaries checks that a summary has the numbers that matter, and is short however much there is to report.
func TestSummaries(t *testing.T) {
	run := wholeRun()
	for id := range event.RequestID(30) {
		run.request(100+id, requestInfo, 4)
	}
	many := benched()
	for i := range 9 {
		p := many.Bench.Points[0]
		p.Name = fmt.Sprint("point ", i)
		many.Bench.Points = append(many.Bench.Points, p)
	}
	searched := benched()
	searched.Bench.Capacity = &capacity.Result{Required: 0.95, Trials: []capacity.Trial{{Rate: 2, Requests: 12}}}
	var members []Member
	for i := range 30 {
		members = append(members, replica(fmt.Sprint("replica ", i), time.Duration(i+1)*time.Millisecond, event.LinkConnected))
	}
	for name, c := range map[string]struct {
		report    *Report
		most      int
		has, lack []string
	}{
		"run":       {run.build(Meta{}), 30, []string{"finished 33", "  TPOT  ", "Mean TTFT", "  TTPS  ", "  decode  "}, []string{"EXPERTS", "REQUESTS", "max ITL"}},
		"empty run": {newRun().build(Meta{}), 20, []string{"requests"}, []string{"MACHINE"}},
		"benchmark": {benched(), 30, []string{"BENCHMARK", "2 at a time", "298 ms?", "1 request failed"}, []string{"REQUESTS", "95 %  "}},
		"points":    {many, 40, []string{"point 0 ", "point 8 "}, []string{"TARGETS"}},
		"capacity":  {searched, 30, []string{"CAPACITY", "No rate was found"}, []string{"BENCHMARK"}},
		"fleet":     {BuildFleet(Meta{}, members), 30, []string{"replica 17 ", "The first 10 of 30.", "  median  "}, []string{"replica 18 "}},
		"server":    {served(), 30, []string{"requests"}, []string{"COUNTED BY"}},
	} {
		got := in(t, c.report.WriteSummary)
		if n := strings.Count(got, "\n"); n > c.most {
			t.Errorf("%s: %d lines, want at most %d:\n%s", name, n, c.most, got)
		}
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
		for _, no := range c.lack {
			if strings.Contains(got, no) {
				t.Errorf("%s has %q:\n%s", name, no, got)
			}
		}
	}
}

// TestSummaryHasTheWorst checks that a summary has the most severe insights.
func TestSummaryHasTheWorst(t *testing.T) {
	r := newRun().build(Meta{})
	r.Verdicts = nil
	for _, severity := range []verdict.Severity{verdict.Good, verdict.Info, verdict.Watch, verdict.Bad, verdict.Watch} {
		r.Verdicts = append(r.Verdicts, verdict.Verdict{Severity: severity, Text: "text of " + severity.String(), Evidence: "long"})
	}
	got := in(t, r.WriteSummary)
	const want = "\nINSIGHTS\n  bad    text of bad\n  watch  text of watch\n  watch  text of watch\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("%s\nlacks at its end\n%s", got, want)
	}
	if r.Verdicts[0].Severity != verdict.Good || r.Verdicts[0].Evidence == "" {
		t.Error("the summary has changed the report")
	}
}
