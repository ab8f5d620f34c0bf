package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Bench says which of the requests a benchmark made for what, and what came of it. Requests of its warm-up are in no run.
type Bench struct {
	Targets   string     `json:"targets"` // that goodput and compliance judge by
	Points    []Point    `json:"points"`
	Failed    int        `json:"failed_requests"` // or refused, those of the warm-up too
	Economics *Economics `json:"economics"`       // null: nobody has counted
	Limits    *Limits    `json:"limits"`          // null: not measured
	Client    *Client    `json:"client"`          // null: the engine ran in this program's own process
	Compat    *Compat    `json:"compat"`          // null: not asked for
	Advice    []Verdict  `json:"recommendations"`
}

// AddBench adds a benchmark to a report of the session that it was made in. Points come with their runs, and are described here. Of the targets,
// one at least, the first are those of goodput.
func (r *Report) AddBench(points []Point, failed int, targets []Targets) {
	r.Bench = &Bench{Targets: targets[0].Name, Points: []Point{}, Failed: failed, Advice: []Verdict{}}
	for _, p := range points {
		r.AddPoint(p, targets)
	}
}

// AddPoint adds one more point to a benchmark.
func (r *Report) AddPoint(p Point, targets []Targets) {
	p.describe(r.byID(), targets)
	p.touch(r.Model)
	r.Bench.Points = append(r.Bench.Points, p)
}

func (p *Point) count() int {
	n := 0
	for _, run := range p.Runs {
		n += len(run.Requests)
	}
	return n
}

// first is the distribution of the point's warm TTFT, or of the cold one where all requests are cold.
func (p *Point) first() *Statistics {
	if p.TTFT == nil {
		return p.ColdTTFT
	}
	return p.TTFT
}

// benchSection has a row for each point.
func (r *Report) benchSection() section {
	s := section{
		title: "Benchmark", left: 1,
		header: []string{"point", "requests", "TTFT p50", "p90", "p99", "TPOT p50", "p90", "p99", "output tokens/s", "requests/s", "goodput", "met all"},
	}
	if r.Bench == nil {
		return s
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		ttft := p.first()
		s.rows = append(s.rows, []string{
			p.Name, fmt.Sprint(p.count()), ttft.cell("p50", metric.Seconds), ttft.cell("p90", metric.Seconds), ttft.cell("p99", metric.Seconds),
			p.TPOT.cell("p50", metric.Seconds), p.TPOT.cell("p90", metric.Seconds), p.TPOT.cell("p99", metric.Seconds),
			p.Output.margin(metric.Rate), p.Finished.cell("mean", metric.Rate), p.Goodput.cell("mean", metric.Rate), short(p.Compliance.All, metric.Percent),
		})
		if p.Late != nil && p.Late.Max.V > lateMatters {
			s.words = append(s.words, fmt.Sprintf("%s: requests were sent up to %s after their time (p50 %s): TTFT does not hold that.",
				p.Name, metric.Seconds(p.Late.Max.V), metric.Seconds(p.Late.P50.V)))
		}
	}
	s.words = append(s.words, "Goodput counts requests/s that met "+r.Bench.Targets+".",
		"A ? follows a percentile of too few samples; ± is the 95 % interval of the mean.")
	if n := r.Bench.Failed; n > 0 {
		s.words = append(s.words, fmt.Sprintf("%d requests failed.", n))
	}
	return s
}

// lateMatters is from which delay on, in s, the text tells that requests were sent late.
const lateMatters = 0.001

// pointSections are everything that is known of each point.
func (r *Report) pointSections() (out []section) {
	if r.Bench == nil {
		return nil
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		s := section{title: p.Name, left: 1, header: []string{"", "samples", "mean", "95 %", "stddev", "p50", "p90", "p95", "p99", "max"}}
		for _, d := range distributions {
			if v := *d.of(p); v != nil {
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

// tokenWords are the counts of tokens and the rates in the other units.
func (p *Point) tokenWords() []string {
	t := &p.Tokens
	words := []string{fmt.Sprintf("%d of %d requests finished in %d runs: %d prompt tokens (%d cached, %d padding), %d generated.",
		t.Requests, p.count(), len(p.Runs), t.Prompt, t.Cached, t.Padding, t.Generated)}
	for _, rate := range []struct {
		name string
		of   *Statistics
	}{{"TTPS", p.Output}, {"Decode", p.Decode}, {"Prefill", p.Prefill}} {
		if rate.of == nil {
			continue
		}
		if v, ok := rate.of.Mean.Positive(); ok {
			words = append(words, fmt.Sprintf("%s: %s tokens/s = %.3g tokens/ms = %.3g ms/token.", rate.name, metric.Rate(v), v/1000, 1000/v))
		}
	}
	return words
}

// partWords say where the mean TTFT goes, with the time per prompt token.
func (p *Point) partWords() []string {
	total := 0.0
	for _, part := range p.Parts {
		total += part.Time.V
	}
	if total == 0 || p.Dominant == nil {
		return nil
	}
	perToken := float64(p.Tokens.Requests) / max(float64(p.Tokens.Prompt), 1)
	words := "TTFT goes to"
	for i, part := range p.Parts {
		if i > 0 {
			words += ","
		}
		words += fmt.Sprintf(" %s %s (%s)", part.Name, metric.Seconds(part.Time.V), metric.Percent(part.Time.V/total))
	}
	return []string{words + ".", fmt.Sprintf("Dominant: %s; TTFT is %s a prompt token.", *p.Dominant, metric.Seconds(total*perToken))}
}

// profilesSection says of each point which targets its requests met.
func (r *Report) profilesSection() section {
	s := section{title: "Targets", left: 2, header: []string{"point", "target", "TTFT met", "TPOT met", "E2EL met", "all met", "goodput, requests/s"}}
	if r.Bench == nil {
		return s
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		for _, f := range p.Profiles {
			c := &f.Compliance
			s.rows = append(s.rows, []string{
				p.Name, f.Targets, short(c.TTFT, metric.Percent), short(c.TPOT, metric.Percent), short(c.E2EL, metric.Percent), short(c.All, metric.Percent),
				f.Goodput.margin(metric.Rate),
			})
		}
	}
	return s
}
