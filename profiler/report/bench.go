package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Definitions is the version of the definitions of docs/metrics.md. It rises when a number of a benchmark that keeps its name
// means something else: results of two versions are not comparable in that number.
const Definitions = 1

// Bench holds the points and the results of a benchmark. Warm-up requests are in no run.
type Bench struct {
	Definitions int     `json:"definitions,omitempty"` // see Definitions; 0: not named
	Targets     string  `json:"targets"`               // targets of goodput and compliance
	Points      []Point `json:"points"`
	Failed      int     `json:"failed_requests"` // failed or refused requests, including the warm-up
	// Cold holds the requests of cold points. The model was loaded again for each, so they are not in the session's
	// requests, totals and distributions.
	Cold      []Request  `json:"cold_requests,omitempty"`
	Economics *Economics `json:"economics"` // null: not measured
	Limits    *Limits    `json:"limits"`    // null: not measured
	Client    *Client    `json:"client"`    // null: the engine ran inside llmtop

	Capacity *capacity.Result `json:"capacity,omitempty"` // null: not searched
}

// count returns the number of requests.
func (p *Point) count() int {
	n := 0
	for _, run := range p.Runs {
		n += len(run.Requests)
	}
	return n
}

// anyTTFT returns the warm TTFT, or the cold one if all requests are cold.
func (p *Point) anyTTFT() *Statistics {
	if p.TTFT == nil {
		return p.ColdTTFT
	}
	return p.TTFT
}

// benchSection returns a table with a row per point.
func benchSection(r *Report) section {
	s := section{
		title: "Benchmark", left: 1,
		header: []string{"point", "requests", "TTFT p50", "p90", "p99", "TPOT p50", "p90", "p99", "output tokens/s", "requests/s", "goodput", "met all"},
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		ttft := p.anyTTFT()
		s.rows = append(s.rows, []string{
			p.Name, fmt.Sprint(p.count()), ttft.cell("p50", metric.Seconds), ttft.cell("p90", metric.Seconds), ttft.cell("p99", metric.Seconds),
			p.TPOT.cell("p50", metric.Seconds), p.TPOT.cell("p90", metric.Seconds), p.TPOT.cell("p99", metric.Seconds),
			p.Output.margin(metric.Rate), p.Finished.cell("mean", metric.Rate), p.Goodput.cell("mean", metric.Rate), short(p.Compliance.All, metric.Percent),
		})
		if p.SendDelay != nil && p.SendDelay.Max.V > visibleDelay {
			s.words = append(s.words, fmt.Sprintf("%s: requests were sent up to %s late (p50 %s); TTFT does not include this delay.",
				p.Name, metric.Seconds(p.SendDelay.Max.V), metric.Seconds(p.SendDelay.P50.V)))
		}
		if c := p.Connect; c != nil && c.Max.V > visibleWait && ttft != nil && c.Max.V >= connectMatters*ttft.P50.V {
			s.words = append(s.words, fmt.Sprintf("%s: requests waited up to %s for a connection (p50 %s); TTFT does not include this wait.",
				p.Name, metric.Seconds(c.Max.V), metric.Seconds(c.P50.V)))
		}
	}
	s.words = append(s.words, reasoningWords(r)...)
	if n := withoutGaps(r); n > 0 {
		s.words = append(s.words, fmt.Sprintf("%s came in one piece, without TPOT: its target is judged by the mean, E2EL / tokens.", metric.Plural(n, "answer")))
	}
	s.words = append(s.words, "Goodput: requests/s that met "+r.Bench.Targets+".",
		"A ? marks a percentile of too few samples; ± is the 95 % confidence interval of the mean.")
	if n := r.Bench.Failed; n > 0 {
		s.words = append(s.words, metric.Plural(n, "request")+" failed.")
	}
	return s
}

// reasoningWords describes the points whose requests reason.
func reasoningWords(r *Report) (out []string) {
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if p.Answer == nil && p.Thinking == nil && p.Reasoning == nil {
			continue
		}
		out = append(out, fmt.Sprintf("%s: first answer token p50 %s, p99 %s; thinking p50 %s; %s reasoning tokens (mean), p50 %s tokens/s; TPOT of the answer p50 %s.",
			p.Name, p.Answer.cell("p50", metric.Seconds), p.Answer.cell("p99", metric.Seconds), p.Thinking.cell("p50", metric.Seconds),
			p.Reasoning.cell("mean", metric.Count), p.ReasonRate.cell("p50", metric.Rate), p.AnswerTPOT.cell("p50", metric.Seconds)))
	}
	return out
}

// withoutGaps returns how many answers of the points came in one piece.
func withoutGaps(r *Report) (n int) {
	byID := requestsByID(r)
	for i := range r.Bench.Points {
		for _, run := range r.Bench.Points[i].Runs {
			for _, id := range run.Requests {
				if q := byID[id]; q != nil && q.State == event.StateFinished.String() && q.Generated > 1 && !q.TPOT.OK() && !q.Decode.OK() {
					n++
				}
			}
		}
	}
	return n
}

// visibleDelay is the send delay in s from which the summary reports late requests, visibleWait the wait in s, and
// connectMatters the share of the median TTFT, from which it reports waits for connections.
const (
	visibleDelay   = 0.001
	visibleWait    = 0.01
	connectMatters = 0.1
)

// pointSections returns a table per point with all its distributions.
func pointSections(r *Report) (out []section) {
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		s := section{title: p.Name, left: 1, header: []string{"", "samples", "mean", "95 %", "stddev", "p50", "p90", "p95", "p99", "max"}}
		for _, d := range distributions {
			if v := *d.field(p); v != nil {
				s.rows = append(s.rows, append([]string{d.name, fmt.Sprint(v.Count)}, v.cells(d.format)...))
			}
		}
		for _, g := range p.Groups {
			if g.TPS != nil {
				s.rows = append(s.rows, append([]string{"TPS of group " + g.Name, fmt.Sprint(g.TPS.Count)}, g.TPS.cells(metric.Rate)...))
			}
		}
		s.words = append(p.tokenWords(), p.partWords()...)
		out = append(out, s)
	}
	return out
}

// tokenWords returns the counts of tokens, and the mean rates in other units. A time per token is only given where it was
// measured: the mean of rates is not 1 / the mean of times.
func (p *Point) tokenWords() []string {
	t := &p.Tokens
	cached := "cached " + t.Cached.Absence()
	if t.Cached.OK() {
		cached = wholeTokens(t.Cached.V) + " cached"
	}
	words := []string{fmt.Sprintf("%d of %s finished in %s: %d prompt tokens (%s, %d padding), %d generated.",
		t.Requests, metric.Plural(p.count(), "request"), metric.Plural(len(p.Runs), "run"), t.Prompt, cached, t.Padding, t.Generated)}
	for _, rate := range []struct {
		name string
		s    *Statistics
	}{{"TTPS", p.Output}, {"Decode", p.Decode}, {"Prefill", p.Prefill}} {
		if rate.s == nil {
			continue
		}
		if v, ok := rate.s.Mean.Positive(); ok {
			words = append(words, fmt.Sprintf("%s: %s tokens/s = %.3g tokens/ms.", rate.name, metric.Rate(v), v/1000))
		}
	}
	if p.TPOT != nil {
		if v, ok := p.TPOT.Mean.Positive(); ok {
			words = append(words, fmt.Sprintf("TPOT: %.3g ms/token.", 1000*v))
		}
	}
	return words
}

// text returns a component with its share of a total.
func (p *Part) text(total float64) string {
	return fmt.Sprintf("%s %s (%s)", p.Name, metric.Seconds(p.Time.V), metric.Percent(p.Time.V/total))
}

// partWords returns the components of the mean TTFT, and the TTFT per prompt token.
func (p *Point) partWords() []string {
	total, _ := p.Parts.total()
	if total == 0 || p.Dominant == nil {
		return nil
	}
	perToken := float64(p.Tokens.Requests) / max(float64(p.Tokens.Prompt), 1)
	words := "TTFT:"
	for i, part := range p.Parts {
		if i > 0 {
			words += ","
		}
		words += " " + part.text(total)
	}
	return []string{words + ".", fmt.Sprintf("Dominant component: %s. TTFT per prompt token: %s.", *p.Dominant, metric.Seconds(total*perToken))}
}

// profilesSection returns the share of requests of each point that met each set of targets.
func profilesSection(r *Report) section {
	s := section{title: "Targets", left: 2, header: []string{"point", "target", "TTFT met", "TPOT met", "E2EL met", "all met", "goodput, requests/s"}}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		for _, f := range p.Profiles {
			c := &f.Compliance
			if c.Answer.OK() {
				s.words = append(s.words, fmt.Sprintf("%s, %s: the target for the first answer token was met by %s.", p.Name, f.Targets, metric.Percent(c.Answer.V)))
			}
			s.rows = append(s.rows, []string{
				p.Name, f.Targets, short(c.TTFT, metric.Percent), short(c.TPOT, metric.Percent), short(c.E2EL, metric.Percent), short(c.All, metric.Percent),
				f.Goodput.margin(metric.Rate),
			})
		}
	}
	return s
}

// requestsByID returns the requests by id.
func requestsByID(r *Report) map[event.RequestID]*Request {
	out := make(map[event.RequestID]*Request, len(r.Requests))
	for q := range r.all() {
		out[q.ID] = q
	}
	return out
}
