package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
)

// WriteMarkdown writes a summary as Markdown with tables, as a comment or a page of a wiki wants it.
func (r *Report) WriteMarkdown(out io.Writer) error {
	w := &tables{Writer: bufio.NewWriter(out)}
	for _, s := range r.sections() {
		w.section(s)
	}
	return w.Flush() // the first error sticks
}

// section is a part of a summary: words, then a table. Both Markdown and HTML are made of it.
type section struct {
	title  string
	words  []string
	header []string
	rows   [][]string
	left   int // columns that hold words, from the left; the others hold numbers
}

// sections are the summary's parts that have something in them.
func (r *Report) sections() []section {
	out := []section{r.headSection()}
	parts := []section{
		r.benchSection(), r.latencySection(), r.partsSection(), r.requestsSection(), r.groupsSection(), r.economicsSection(), r.clientSection(),
		r.hostSection(), r.expertsSection(), r.placementSection(), r.opsSection(),
	}
	for _, s := range append(parts, r.compatSections()...) {
		if len(s.rows) > 0 {
			out = append(out, s)
		}
	}
	return append(out, r.verdictsSection())
}

func (r *Report) headSection() section {
	s := section{title: "llmtop " + r.Version, left: 2, header: []string{"", ""}}
	if r.Partial {
		s.words = append(s.words, "Interrupted: this report is partial.")
	}
	for _, kind := range lostKinds() {
		if n := r.Lost[kind]; n > 0 {
			s.words = append(s.words, fmt.Sprintf("Lost %d %s events: what follows misses them.", n, kind))
		}
	}
	if m := r.Model; m != nil {
		s.rows = append(s.rows, []string{"model", m.Name + spaced(m.Quantisation)})
		if shape := m.shape(); len(shape) > 0 {
			s.rows = append(s.rows, []string{"shape", strings.Join(shape, ", ")})
		}
	}
	t := &r.Totals
	s.rows = append(s.rows,
		[]string{"engine", r.Engine.where()},
		[]string{"machine", r.Machine.describe()},
		[]string{"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		[]string{"requests", fmt.Sprintf("%d finished, %d cancelled, %d failed", t.Finished, t.Cancelled, t.Failed)},
		[]string{"tokens", fmt.Sprintf("%d prompt (%d cached, %d padding), %d generated", t.PromptTokens, t.CachedTokens, t.PaddingTokens, t.GeneratedTokens)},
		[]string{"TTPS", perSecond(t.TTPS) + perToken(t.TTPS)})
	return s
}

// perToken is the same rate as time per token.
func perToken(n Number) string {
	if v, ok := n.Positive(); ok {
		return ", " + metric.Seconds(1/v) + " a token"
	}
	return ""
}

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
		ttft := p.TTFT
		if ttft == nil {
			ttft = p.ColdTTFT
		}
		s.rows = append(s.rows, []string{
			p.Name, fmt.Sprint(p.count()), ttft.cell(medianOf, metric.Seconds), ttft.cell(ninetiethOf, metric.Seconds), ttft.cell(tailOf, metric.Seconds),
			p.TPOT.cell(medianOf, metric.Seconds), p.TPOT.cell(ninetiethOf, metric.Seconds), p.TPOT.cell(tailOf, metric.Seconds),
			p.Output.margin(), p.Finished.cell(meanOf, metric.Rate), p.Goodput.cell(meanOf, metric.Rate), short(p.Compliance.All, metric.Percent),
		})
	}
	s.words = []string{"Goodput counts requests that met " + r.Bench.Targets + ".", "A ? follows a percentile of too few samples; ± is the 95 % interval of the mean."}
	return s
}

func ninetiethOf(s *Statistics) (Number, string) { return s.P90, "p90" }

func (r *Report) latencySection() section {
	s := section{title: "Latency", left: 1, header: []string{"", "count", "mean", "stddev", "p50", "p90", "p95", "p99", "max"}}
	p := &r.Percentiles
	for _, row := range []struct {
		name string
		d    *Distribution
	}{
		{"TTFT", p.TTFT}, {"TTFT cold", p.ColdTTFT}, {"TPOT", p.TPOT}, {"ITL", p.ITL}, {"STIL", p.STIL}, {"E2EL", p.E2EL},
	} {
		if d := row.d; d != nil {
			cells := []string{row.name, fmt.Sprint(d.Count)}
			for _, n := range []Number{d.Mean, d.StdDev, d.P50, d.P90, d.P95, d.P99, d.Max} {
				cells = append(cells, short(n, metric.Seconds))
			}
			s.rows = append(s.rows, cells)
		}
	}
	return s
}

// meanParts are the TTFT components of all warm requests that have them, in drawing order, as means in s; the cold ones' if there are no
// others.
func (r *Report) meanParts() (names []string, means []float64, cold bool) {
	for _, cold := range []bool{false, true} {
		sums, n := map[string]float64{}, 0
		for i := range r.Requests {
			q := &r.Requests[i]
			if q.Cold != cold || len(q.Parts) == 0 {
				continue
			}
			n++
			for _, p := range q.Parts {
				if _, known := sums[p.Name]; !known {
					names = append(names, p.Name)
				}
				sums[p.Name] += p.Time.V
			}
		}
		for _, name := range names {
			means = append(means, sums[name]/float64(n))
		}
		if n > 0 {
			return names, means, cold
		}
	}
	return nil, nil, false
}

func (r *Report) partsSection() section {
	names, means, cold := r.meanParts()
	s := section{title: "Where TTFT goes", left: 1, header: []string{"component", "mean", "share"}}
	if cold {
		s.title += ", model load included"
	}
	total := 0.0
	for _, v := range means {
		total += v
	}
	for i, name := range names {
		share := "-"
		if total > 0 {
			share = metric.Percent(means[i] / total)
		}
		s.rows = append(s.rows, []string{name, metric.Seconds(means[i]), share})
	}
	if len(s.rows) > 0 {
		s.rows = append(s.rows, []string{"TTFT", metric.Seconds(total), ""})
	}
	return s
}

func (r *Report) requestsSection() section {
	s := section{title: "Requests", left: 3, header: []string{"id", "state", "label", "prompt", "cached", "generated", "queue", "TTFT", "TPOT", "E2EL", "tokens/s"}}
	for i := range r.Requests[:min(len(r.Requests), listed)] {
		q := &r.Requests[i]
		s.rows = append(s.rows, []string{
			fmt.Sprint(q.ID), q.State, q.Label, fmt.Sprint(q.Prompt), fmt.Sprint(q.Cached), fmt.Sprint(q.Generated),
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

func (r *Report) hostSection() section {
	s := section{title: "Machine", left: 1, header: []string{"", "engine's process", "machine"}}
	h, p := &r.Host, &r.Host.Engine
	if !h.Known {
		return s
	}
	s.rows = [][]string{
		{"CPU", format(p.CPU, metric.Rate) + " cores", format(h.CPU, metric.Percent)},
		{"frequency", "", format(h.Frequency, hertz)},
		{"memory", format(p.RSS, metric.Bytes) + ", peak " + format(p.Peak, metric.Bytes), format(h.MemoryUsed, metric.Bytes) + " of " + format(h.Memory, metric.Bytes)},
		{"disk read", format(p.ReadSum, metric.Bytes) + ", " + format(p.ReadOps, metric.Rate) + " operations/s", ""},
		{"disk written", format(p.WriteSum, metric.Bytes) + ", " + format(p.WriteOps, metric.Rate) + " operations/s", ""},
	}
	for _, g := range h.GPUs {
		s.rows = append(s.rows, []string{g.Name, "", format(g.Util, metric.Percent) + ", " + format(g.MemoryUsed, metric.Bytes) + " of " + format(g.Memory, metric.Bytes)})
	}
	if h.NoGPU != nil {
		s.words = []string{*h.NoGPU}
	}
	return s
}

func hertz(v float64) string { return metric.Count(v/1e6) + " MHz" }

func (r *Report) expertsSection() section {
	s := section{title: "Experts while decoding", left: 3, header: []string{"layer", "hot", "cold", "picks", "max/mean", "CV", "entropy", "never picked"}}
	if r.Experts == nil || r.Experts.Decode.Tokens == 0 {
		return s
	}
	for l, b := range r.Experts.Decode.Stats {
		s.rows = append(s.rows, []string{
			fmt.Sprint(l), list(b.Hot), list(b.Cold), fmt.Sprint(b.Total), short(b.MaxMean, metric.Rate), short(b.CV, metric.Rate), short(b.Entropy, metric.Rate), fmt.Sprint(b.Dead),
		})
	}
	if n := r.Experts.EveryN; n > 1 {
		s.words = []string{fmt.Sprintf("Picks were counted in 1 step of %d.", n)}
	}
	return s
}

func list(experts []int) string {
	words := make([]string, len(experts))
	for i, e := range experts {
		words[i] = fmt.Sprint(e)
	}
	return strings.Join(words, ", ")
}

func (r *Report) verdictsSection() section {
	s := section{title: "What to know", left: 3, header: []string{"", "finding", "try"}}
	for _, v := range r.Verdicts {
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

// tables writes sections as Markdown.
type tables struct{ *bufio.Writer }

func (w *tables) section(s section) {
	w.WriteString("### " + clean.Markdown(s.title) + "\n\n")
	for _, words := range s.words {
		w.WriteString(clean.Markdown(words) + "\n\n")
	}
	if len(s.rows) == 0 {
		return
	}
	w.row(s.header)
	for i := range s.header {
		if i < s.left {
			w.WriteString("|---")
		} else {
			w.WriteString("|--:")
		}
	}
	w.WriteString("|\n")
	for _, row := range s.rows {
		w.row(row)
	}
	w.WriteString("\n")
}

func (w *tables) row(cells []string) {
	for _, cell := range cells {
		w.WriteString("| " + clean.Markdown(cell) + " ")
	}
	w.WriteString("|\n")
}
