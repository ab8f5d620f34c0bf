package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// section is a part of a summary: words, then a table. Every format for people is made of them.
type section struct {
	title  string
	words  []string
	header []string
	rows   [][]string
	left   int // columns that hold words, from the left; the others hold numbers
}

func (s *section) empty() bool { return len(s.rows)+len(s.words) == 0 }

// sections are all parts of a summary that have something in them.
func (r *Report) sections() []section {
	return append(append([]section{r.headSection()}, r.body()...), r.verdictsSection())
}

// body are the parts between what was run and what to know of it.
func (r *Report) body() []section {
	if r.Fleet != nil {
		return filled(r.Fleet.sections())
	}
	parts := []section{r.benchSection(), r.profilesSection(), r.limitsSection()}
	parts = append(parts, r.pointSections()...)
	parts = append(parts, r.reportedSections()...)
	parts = append(parts,
		r.economicsSection(), r.clientSection(), r.requestsSection(), r.latencySection(), r.probesSection(), r.partsSection(), r.throughputSection(), r.groupsSection(),
		r.hostSection(), r.expertsSection(), r.placementSection(), r.opsSection())
	return filled(append(parts, r.compatSections()...))
}

// filled are the sections that have something in them.
func filled(all []section) []section {
	return slices.DeleteFunc(all, func(s section) bool { return s.empty() })
}

// notes are what whoever reads a report has to know before its numbers.
func (r *Report) notes() (lines []string) {
	if r.Engine.Reason != "" {
		lines = append(lines, "The engine says: "+r.Engine.Reason)
	}
	lines = append(lines, r.Engine.Connection.words()...)
	for _, line := range r.Engine.LastLog {
		lines = append(lines, "log: "+line)
	}
	if r.Partial {
		lines = append(lines, "Interrupted: this report is partial.")
	}
	for kind := range event.NumKinds {
		if n := r.Lost[kind.String()]; n > 0 {
			lines = append(lines, fmt.Sprintf("Lost %d %s events: what follows misses them.", n, kind))
		}
	}
	if c := r.Cut; c.Requests+c.Tokens > 0 {
		lines = append(lines, fmt.Sprintf("%d requests and %d tokens are beyond the bounds of a report: counted, not listed.", c.Requests, c.Tokens))
	}
	return lines
}

func (r *Report) headSection() section {
	s := section{title: "llmtop " + r.Version, left: 2, header: []string{"", ""}, words: r.notes()}
	if m := r.Model; m != nil {
		s.rows = append(s.rows, []string{"model", m.Name + spaced(m.Quantisation)})
		if shape := m.shape(); len(shape) > 0 {
			s.rows = append(s.rows, []string{"shape", strings.Join(shape, ", ")})
		}
	}
	if r.Fleet != nil {
		s.rows = append(s.rows, r.Fleet.describe(r)...)
		return s
	}
	requests, tokens := r.Totals.words()
	s.rows = append(s.rows,
		[]string{"engine", r.Engine.where()},
		[]string{"machine", r.Machine.describe()},
		[]string{"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		[]string{"requests", requests},
		[]string{"tokens", tokens},
		[]string{"TTPS", perSecond(r.Totals.TTPS) + perToken(r.Totals.TTPS)})
	return s
}

// perToken is the same rate as time per token.
func perToken(n Number) string {
	if v, ok := n.Positive(); ok {
		return ", " + metric.Seconds(1/v) + " a token"
	}
	return ""
}

// latencySection are the latencies of all requests of the session.
func (r *Report) latencySection() section {
	s := section{title: "Latency", left: 1, header: []string{"", "samples", "mean", "stddev", "p50", "p90", "p95", "p99", "max"}}
	switch {
	case r.Bench != nil:
		s.title += " of all requests, those of the warm-up included"
	case r.Reported != nil:
		s.title += " of the requests that llmtop has seen in their slots"
	}
	p := &r.Percentiles
	for _, row := range []struct {
		name string
		d    *Distribution
	}{
		{"TTFT", p.TTFT}, {"TTFT cold", p.ColdTTFT}, {"TPOT", p.TPOT}, {"ITL", p.ITL}, {"STIL", p.STIL}, {"E2EL", p.E2EL},
	} {
		d := row.d
		if d == nil {
			continue
		}
		cells := []string{row.name, fmt.Sprint(d.Count)}
		for _, n := range []struct {
			v     Number
			share float64
		}{{d.Mean, 0}, {d.StdDev, 0}, {d.P50, 0}, {d.P90, 0.90}, {d.P95, 0.95}, {d.P99, 0.99}, {d.Max, 0}} {
			words := short(n.v, metric.Seconds)
			if tooFew(float64(d.Count), n.share) {
				words += "?"
			}
			cells = append(cells, words)
		}
		s.rows = append(s.rows, cells)
	}
	if len(s.rows) > 0 && r.Bench == nil {
		s.words = []string{"A ? follows a percentile of too few samples."}
	}
	return s
}

// partsSection is where the TTFT of the session's requests went; the points of a benchmark have their own.
func (r *Report) partsSection() section {
	s := section{title: "Where TTFT goes", left: 1, header: []string{"component", "mean", "share", ""}}
	if r.Bench != nil {
		return s
	}
	means, note := r.parts()
	if note != "" {
		s.title += ", " + note
	}
	total, longest := 0.0, 0.0
	for _, p := range means {
		total, longest = total+p.Time.V, max(longest, p.Time.V)
	}
	for _, p := range means {
		share, mark := "-", ""
		if total > 0 {
			share = metric.Percent(p.Time.V / total)
		}
		if p.Time.V == longest {
			mark = "dominant"
		}
		s.rows = append(s.rows, []string{p.Name, metric.Seconds(p.Time.V), share, mark})
	}
	if len(s.rows) > 0 {
		s.rows = append(s.rows, []string{"TTFT", metric.Seconds(total), "", ""})
	}
	return s
}

// parts are the means of the TTFT components of requests, or else those that the server counts, with what there is to say of them.
func (r *Report) parts() (means Parts, note string) {
	if parts := r.Reported.divided(); parts != nil {
		return parts, "means as the server counts them"
	}
	means, cold := meanParts(r.all())
	switch {
	case r.Reported != nil: // nothing else is seen whole
		note = "by llmtop's own probes"
	case cold:
		note = "model load included"
	}
	return means, note
}

// all are the requests.
func (r *Report) all() []*Request {
	out := make([]*Request, len(r.Requests))
	for i := range r.Requests {
		out[i] = &r.Requests[i]
	}
	return out
}

func (r *Report) throughputSection() section {
	t := &r.Throughput
	s := section{title: "Throughput", left: 2, header: []string{"", ""}, rows: [][]string{{"TTPS", perSecond(t.SessionTTPS) + " over the whole run"}}}
	if r.Reported != nil || r.Engine.Name == "" { // the other rates are among what it tells, by other definitions
		return s
	}
	s.rows = append(s.rows,
		[]string{"prefill", perSecond(t.Prefill) + " while prompts were processed, last 10 s"},
		[]string{"decode", perSecond(t.Decode) + " while tokens were generated, last 10 s"},
		[]string{"memory", "touched a second by decoding: " + format(t.Bandwidth, metric.Bytes) + "; copied by this machine: " + format(t.CopyBandwidth, metric.Bytes)},
		[]string{"KV cache", format(r.KV.Used, metric.Count) + " of " + format(r.KV.Total, metric.Count) + " cells in use; a request's are kept for " + median(r.KV.Residency) + " (p50)"},
		[]string{"stalls", whole(r.Totals.Stalls)})
	return s
}

func (r *Report) requestsSection() section {
	s := section{title: "Requests", left: 3, header: []string{"id", "state", "label", "prompt", "cached", "padding", "generated", "queue", "TTFT", "TPOT", "E2EL", "tokens/s"}}
	for i := range r.Requests[:min(len(r.Requests), listed)] {
		q := &r.Requests[i]
		s.rows = append(s.rows, []string{
			fmt.Sprint(q.ID), q.State, q.Label, fmt.Sprint(q.Prompt), fmt.Sprint(q.Cached), short(q.Padding, func(v float64) string { return fmt.Sprint(v) }), fmt.Sprint(q.Generated),
			short(q.STIL, metric.Seconds), short(q.TTFT, metric.Seconds), short(q.TPOT, metric.Seconds), short(q.E2EL, metric.Seconds), short(q.DecodeRate, metric.Rate),
		})
	}
	if more := len(r.Requests) - listed; more > 0 {
		s.words = []string{fmt.Sprintf("The first %d of %d.", listed, len(r.Requests))}
	}
	return s
}

func (r *Report) groupsSection() section {
	s := section{title: "Groups", left: 1, header: []string{"group", "requests", "generated", "TPS"}}
	if len(r.Groups) == 1 && r.Groups[0].Name == "" {
		return s
	}
	for _, g := range r.Groups {
		s.rows = append(s.rows, []string{g.Name, fmt.Sprint(g.Requests), fmt.Sprint(g.Generated), short(g.TPS, metric.Rate)})
	}
	return s
}

func (r *Report) expertsSection() section {
	s := section{title: "Experts while decoding", left: 3, header: []string{"layer", "hot", "cold", "picks", "max/mean", "CV", "entropy", "never picked"}}
	if r.Experts == nil || r.Experts.Decode.Tokens == 0 {
		return s
	}
	for l, b := range r.Experts.Decode.Stats {
		s.rows = append(s.rows, []string{
			fmt.Sprint(l), shares(b.Hot, r.Experts.Decode.Layers[l], b.Total), shares(b.Cold, r.Experts.Decode.Layers[l], b.Total), fmt.Sprint(b.Total), short(b.MaxMean, metric.Rate), short(b.CV, metric.Rate), short(b.Entropy, metric.Rate), fmt.Sprint(b.Dead),
		})
	}
	if n := r.Experts.EveryN; n > 1 {
		s.words = []string{fmt.Sprintf("Picks were counted in 1 step of %d.", n)}
	}
	return s
}

// shares lists experts of a layer with their shares of its picks.
func shares(experts []int, picks []uint64, all uint64) string {
	words := make([]string, len(experts))
	for i, e := range experts {
		words[i] = fmt.Sprintf("%d (%s)", e, metric.Percent(float64(picks[e])/float64(max(all, 1))))
	}
	return strings.Join(words, ", ")
}

func list(experts []int) string {
	words := make([]string, len(experts))
	for i, e := range experts {
		words[i] = fmt.Sprint(e)
	}
	return strings.Join(words, ", ")
}

// findings are what stands out, the benchmark's own first.
func (r *Report) findings() []Verdict {
	if r.Bench == nil {
		return r.Verdicts
	}
	return append(slices.Clone(r.Bench.Advice), r.Verdicts...)
}

func (r *Report) verdictsSection() section {
	s := section{title: "What to know", left: 3, header: []string{"", "finding", "try"}}
	for _, v := range r.findings() {
		s.rows = append(s.rows, []string{v.Severity, v.Text + withEvidence(v.Evidence), v.Try})
	}
	if len(s.rows) == 0 {
		s.words = []string{"Nothing stands out."}
	}
	return s
}

func withEvidence(words string) string {
	if words == "" {
		return ""
	}
	return " (" + words + ")"
}
