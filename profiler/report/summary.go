package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// section is a part of a summary: a table and its notes. All formats for people are made of sections.
type section struct {
	title  string
	words  []string
	header []string
	rows   [][]string
	left   int // text columns, counted from the left; the others are numbers
}

func (s *section) empty() bool { return len(s.rows)+len(s.words) == 0 }

// bodySections returns the sections between the header and the insights.
func bodySections(r *Report) []section {
	if r.Fleet != nil {
		return filled(r.Fleet.sections())
	}
	var parts []section
	if r.Bench != nil {
		parts = append([]section{capacitySection(r), benchSection(r), profilesSection(r), limitsSection(r)}, pointSections(r)...)
	}
	parts = append(parts, reportedSections(r)...)
	parts = append(parts,
		economicsSection(r), clientSection(r), requestsSection("Requests", r.Requests), coldSection(r), latencySection(r), partsSection(r), waitsSection(r), missesSection(r), throughputSection(r), causesSection(r), groupsSection(r),
		hostSection(r), expertsSection(r), expertCacheSection(r), placementSection(r), speculationSection(r), opsSection(r))
	return filled(parts)
}

// filled removes empty sections.
func filled(all []section) []section {
	return slices.DeleteFunc(all, func(s section) bool { return s.empty() })
}

// reportNotes returns what readers must know before the numbers: failures, drops, omissions.
func reportNotes(r *Report) (lines []string) {
	if r.Engine.Reason != "" {
		lines = append(lines, "Engine message: "+r.Engine.Reason)
	}
	lines = append(lines, r.Engine.Connection.notes()...)
	for _, line := range r.Engine.LastLog {
		lines = append(lines, "log: "+line)
	}
	if r.Partial {
		lines = append(lines, "This report is partial: "+WhyPartial+".")
	}
	for kind := range event.NumKinds {
		if n := r.Dropped[kind.String()]; n > 0 {
			lines = append(lines, fmt.Sprintf("Dropped %s: the numbers below miss them.", metric.Plural(n, kind.String()+" event")))
		}
	}
	for _, text := range r.Warnings {
		lines = append(lines, "Warning: "+text+".")
	}
	var omitted []string
	for _, o := range []struct {
		n    uint64
		what string
	}{{r.Omitted.Requests, "request"}, {r.Omitted.Tokens, "token"}, {r.Omitted.Stalls, "stall"}} {
		if o.n > 0 {
			omitted = append(omitted, metric.Plural(o.n, o.what))
		}
	}
	if len(omitted) > 0 {
		lines = append(lines, fmt.Sprintf("Beyond the limits of a report: %s, counted but not listed.", strings.Join(omitted, ", ")))
	}
	if n := r.Omitted.Unmeasured; n > 0 {
		lines = append(lines, fmt.Sprintf("%s began while %d were running: counted, but not in latencies.", metric.Plural(n, "request"), store.MaxOpen))
	}
	return lines
}

func headSection(r *Report) section {
	s := section{title: "llmtop " + r.Version, left: 2, header: []string{"", ""}, words: reportNotes(r)}
	if m := r.Model; m != nil {
		s.rows = append(s.rows, []string{"model", m.Name + withSpace(m.Quantisation)})
		if shape := m.shape(); len(shape) > 0 {
			s.rows = append(s.rows, []string{"shape", strings.Join(shape, ", ")})
		}
	}
	if r.Fleet != nil {
		s.rows = append(s.rows, r.Fleet.describe(r)...)
		return s
	}
	requests, tokens := r.Totals.describe()
	s.rows = append(s.rows,
		[]string{"engine", r.Engine.describe()},
		[]string{"machine", r.Machine.describe()},
		[]string{"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		[]string{"requests", requests},
		[]string{"tokens", tokens},
		[]string{"TTPS", r.Totals.orMore("ttps", r.Totals.TTPS, perSecond(r.Totals.TTPS)) + perToken(r.Totals.TTPS)})
	return s
}

// perToken formats a token rate as time per token.
func perToken(n event.Reading) string {
	if v, ok := n.Positive(); ok {
		return ", " + metric.Seconds(1/v) + " per token"
	}
	return ""
}

// partsSection returns the TTFT components of the session's requests; the points of a benchmark have their own.
func partsSection(r *Report) section {
	s := section{title: "Where TTFT goes", left: 1, header: []string{"component", "mean", "share", ""}}
	if r.Bench != nil {
		return s
	}
	means, note := ttftParts(r)
	if note != "" {
		s.title += ", " + note
	}
	total, longest := means.total()
	for _, p := range means {
		share, mark := "-", ""
		if total > 0 {
			share = metric.Percent(p.Time.V / total)
		}
		if p.Time.V == longest.Time.V {
			mark = "dominant"
		}
		s.rows = append(s.rows, []string{p.Name, metric.Seconds(p.Time.V), share, mark})
	}
	if len(s.rows) > 0 {
		s.rows = append(s.rows, []string{"TTFT", metric.Seconds(total), "", ""})
	}
	return s
}

// ttftParts returns the mean TTFT components: of the requests, or those that the server counts. note qualifies them.
func ttftParts(r *Report) (means Parts, note string) {
	if parts := r.Reported.ttftParts(); parts != nil {
		return parts, "means reported by the server"
	}
	means, cold := meanParts(requestPointers(r))
	switch {
	case cold:
		note = means.load()
	}
	return means, note
}

// requestPointers returns pointers to the requests.
func requestPointers(r *Report) []*Request {
	out := make([]*Request, len(r.Requests))
	for i := range r.Requests {
		out[i] = &r.Requests[i]
	}
	return out
}

func throughputSection(r *Report) section {
	t := &r.Throughput
	session := t.Of("session_ttps")
	s := section{title: "Throughput", left: 2, header: []string{"", ""}, rows: [][]string{{"TTPS", r.Totals.orMore("ttps", session, rateWhile(session, "over the whole run"))}}}
	if len(r.Reported.Numbers) > 0 || r.Engine.Name == "" { // aggregate metrics have the other rates, with the server's definitions
		return s
	}
	s.rows = append(s.rows,
		[]string{"prefill", rateWhile(t.Of("prefill_tokens_per_s"), "while prompts were processed, last 10 s")},
		[]string{"decode", rateWhile(t.Of("decode_tokens_per_s"), "while tokens were generated, last 10 s")},
		[]string{"memory", "decode bandwidth: " + format(t.Of("bandwidth_bytes_per_s"), metric.BytesPerSecond) + "; read bandwidth with as many threads: " + format(t.Of("read_bandwidth_bytes_per_s"), metric.BytesPerSecond)},
		[]string{"KV cache", r.KV.describe()},
		[]string{"stalls", formatCount(r.Totals.Stalls)})
	return s
}

// wholeTokens formats a number of tokens without a unit.
func wholeTokens(v float64) string { return fmt.Sprint(v) }

// coldSection lists the requests for which a benchmark loaded the model again.
func coldSection(r *Report) section {
	if r.Bench == nil {
		return section{}
	}
	s := requestsSection("Cold requests", r.Bench.Cold)
	if len(s.rows) > 0 {
		s.words = append(s.words, "The model was loaded again for each of them. They are not in the totals and latencies of the session.")
	}
	return s
}

// requestsSection lists requests.
func requestsSection(title string, requests []Request) section {
	s := section{title: title, left: 3, header: []string{"id", "state", "label", "prompt", "cached", "padding", "generated", "queue", "TTFT", "TPOT", "E2EL", "decode tokens/s"}}
	for i := range requests[:min(len(requests), listed)] {
		q := &requests[i]
		s.rows = append(s.rows, []string{
			fmt.Sprint(q.ID), q.State, q.Label, short(q.Prompt, wholeTokens), short(q.Cached, wholeTokens), short(q.Padding, wholeTokens), q.generatedText(),
			short(q.STIL, metric.Seconds), short(q.TTFT, metric.Seconds), short(q.TPOT, metric.Seconds), short(q.E2EL, metric.Seconds), short(q.DecodeRate, metric.Rate),
		})
	}
	if len(requests) > listed {
		s.words = []string{fmt.Sprintf("The first %d of %d.", listed, len(requests))}
	}
	return s
}

// generatedText returns the generated tokens.
func (q *Request) generatedText() string {
	if q.AtLeast {
		return fmt.Sprint(q.Generated) + "+"
	}
	return fmt.Sprint(q.Generated)
}

// groupsSection lists the groups, if there are any besides the default one.
func groupsSection(r *Report) section {
	s := section{title: "Groups", left: 1, header: []string{"group", "requests", "generated", "TPS", "TTFT p50", "p99", "TPOT p50", "p99", "met all"}}
	if len(r.Groups) == 1 && r.Groups[0].Name == "" {
		return s
	}
	network := slices.ContainsFunc(r.Groups, func(g Group) bool { return g.RTT != nil })
	if network {
		s.header = append(s.header, "network p50")
	}
	for _, g := range r.Groups {
		row := []string{g.Name, fmt.Sprint(g.Requests), fmt.Sprint(g.Generated), short(g.TPS, metric.Rate)}
		for _, d := range [...]*Distribution{g.TTFT, g.TPOT} {
			row = append(row, cmp.Or(d, new(Distribution)).cells("p50", "p99")...)
		}
		row = append(row, short(g.Met, metric.Percent))
		if network {
			row = append(row, cmp.Or(g.RTT, new(Distribution)).cells("p50")...)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

func expertsSection(r *Report) section {
	s := section{title: "Experts while decoding", left: 3, header: []string{"layer", "hot", "cold", "picks", "max/mean", "CV", "entropy", "never picked"}}
	if r.Experts == nil || r.Experts.Decode.Tokens == 0 {
		return s
	}
	for l, b := range r.Experts.Decode.Stats {
		s.rows = append(s.rows, []string{
			fmt.Sprint(l), expertShares(b.Hot, r.Experts.Decode.Layers[l], b.Total), expertShares(b.Cold, r.Experts.Decode.Layers[l], b.Total), fmt.Sprint(b.Total), short(b.MaxMean, metric.Rate), short(b.CV, metric.Rate), short(b.Entropy, metric.Rate), fmt.Sprint(b.Dead),
		})
	}
	if n := r.Experts.EveryN; n > 1 {
		s.words = []string{fmt.Sprintf("Picks were counted in 1 of %d steps.", n)}
	}
	if m := r.Experts.InMemory; m != nil {
		words := fmt.Sprintf("Page cache: %s of the picks found their expert in memory", short(m.Picks, metric.Percent))
		if n := len(m.HotNotResident); n > 0 {
			words += fmt.Sprintf("; %d hot experts were not resident, as %d:%d", n, m.HotNotResident[0].Layer, m.HotNotResident[0].Expert)
		}
		s.words = append(s.words, words+".")
	}
	return s
}

// expertShares lists experts of a layer with their shares of its picks, for example "3 (25 %), 0 (20 %)".
func expertShares(experts []int, picks []uint64, all uint64) string {
	words := make([]string, len(experts))
	for i, e := range experts {
		words[i] = fmt.Sprintf("%d (%s)", e, metric.Percent(float64(picks[e])/float64(max(all, 1))))
	}
	return strings.Join(words, ", ")
}

// causesSection ranks the causes of lost time.
func causesSection(r *Report) section {
	s := section{title: "Lost time", left: 1, header: []string{"cause", "lost", "share", "n", "try"}}
	for _, c := range r.Causes {
		s.rows = append(s.rows, []string{
			c.Text + withEvidence(c.Evidence), short(c.Lost, metric.Seconds), short(c.Share, metric.Percent), fmt.Sprint(c.N), c.Remedy,
		})
	}
	return s
}

func verdictsSection(r *Report) section {
	s := section{title: "Insights", left: 3, header: []string{"", "finding", "try"}}
	for _, v := range r.Verdicts {
		s.rows = append(s.rows, []string{v.Severity.String(), v.Text + withEvidence(v.Evidence), v.Try})
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
