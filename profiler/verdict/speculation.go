package verdict

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/metric"
)

// speculation: "Speculation gains: 1.34x the speed without drafts: 2.60 tokens per pass, 53 % of the drafted tokens
// accepted". It does not judge what it cannot compare.
func speculation(e *Evidence) (Verdict, bool) {
	p := e.Profit
	if p == nil || !p.Gain.OK() {
		return Verdict{}, false
	}
	v := Verdict{
		Severity: Good, Topic: "speculation",
		Evidence: fmt.Sprintf("%s with drafts, compared with %s; drafts take %s of the time",
			passes(p.Passes), Compared(p), metric.Percent(p.DraftShare.V)),
	}
	outcome := "Speculation gains"
	switch gain := p.Gain.V; {
	case gain < 1-leastProfit:
		outcome, v.Severity = "Speculation costs speed", Watch
		v.Try = shorterDrafts + ", a smaller draft model, or no drafts for these prompts"
	case gain < 1+leastProfit:
		outcome, v.Severity = "Speculation gains nothing", Info
		v.Try = shorterDrafts + ", or a draft model that agrees more often"
	}
	v.Text = fmt.Sprintf("%s: %sx the speed without drafts: %s tokens per pass, %s of the drafted tokens accepted",
		outcome, metric.Rate(p.Gain.V), metric.Rate(p.PerPass.V), metric.Percent(p.Accepted.V))
	return v, true
}

// Compared says what the gain of speculation is measured against.
func Compared(p *metric.Profit) string {
	if p.Plain == 0 {
		return "a pass without drafts as modelled from drafts of different lengths"
	}
	return passes(p.Plain) + " without drafts"
}

func passes(n uint64) string {
	if n == 1 {
		return "1 pass"
	}
	return metric.Count(float64(n)) + " passes"
}
