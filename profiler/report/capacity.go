package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/metric"
)

// rateWords formats a rate of requests.
func rateWords(perSecond float64) string { return fmt.Sprintf("%.3g requests/s", perSecond) }

// capacitySection returns the curve of goodput against the request rate, and the capacity.
func capacitySection(r *Report) section {
	s := section{title: "Capacity", left: 1, header: []string{"rate, requests/s", "sent", "requests", "met all", "95 % limits", "goodput", "", "targets"}}
	if r.Bench.Capacity == nil {
		return s
	}
	c, most := r.Bench.Capacity, 0.0
	for i := range c.Trials {
		most = max(most, c.Trials[i].Goodput)
	}
	knee := c.Knee()
	for i := range c.Trials {
		t := &c.Trials[i]
		verdict := string(t.Verdict)
		switch {
		case t == knee:
			verdict += ": the knee"
		case t.Failed > 0:
			verdict += ": " + metric.Plural(t.Failed, "request") + " failed"
		case t.Verdict == capacity.Client:
			verdict = "llmtop could not send at this rate"
		}
		s.rows = append(s.rows, []string{
			fmt.Sprintf("%.3g", t.Rate), fmt.Sprintf("%.3g", t.Sent), fmt.Sprint(t.Requests), metric.Percent(t.Share),
			metric.Percent(t.Low) + " to " + metric.Percent(t.High), fmt.Sprintf("%.3g", t.Goodput), strings.Repeat("#", int(barCells*t.Goodput/max(most, 1e-9))), verdict,
		})
	}
	s.words = append(capacityWords(c, r.Bench.Targets),
		"Not counted: the warm-up, and the first fifth of each run. TTFT and E2EL begin before the connection here.")
	return s
}

// capacityWords returns the result of a search in words.
func capacityWords(c *capacity.Result, targets string) []string {
	knee := c.Knee()
	if knee == nil {
		words := fmt.Sprintf("No rate was found at which %s of the requests meet %s.", metric.Percent(c.Required), targets)
		if len(c.Trials) > 0 {
			words += fmt.Sprintf(" The lowest measured was %s.", rateWords(c.Trials[0].Rate))
		}
		return []string{words}
	}
	found := fmt.Sprintf("Capacity: %s", rateWords(knee.Rate))
	switch {
	case c.Low == nil:
		found += ", not confirmed by longer runs: more --requests may confirm it"
	case c.Above == nil:
		found += fmt.Sprintf(" (90 %% confidence: at least %.3g)", *c.Low)
	default:
		found += fmt.Sprintf(" (90 %% confidence: %.3g to %.3g)", *c.Low, *c.Above)
	}
	words := []string{fmt.Sprintf("%s. There %s of %s met %s.", found, metric.Percent(knee.Share), metric.Plural(knee.Requests, "request"), targets)}
	switch {
	case c.Client:
		words = append(words, "llmtop could not send faster: the capacity may be higher.")
	case c.Above == nil:
		words = append(words, "No rate was found that fails: the capacity may be higher.")
	}
	if !c.Complete && c.Low == nil {
		words = append(words, "The search was not complete.")
	}
	return words
}
