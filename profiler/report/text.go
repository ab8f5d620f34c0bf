package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// listed is how many requests the text names one by one, and drawn of how many it shows where TTFT went; JSON has them all.
const listed, drawn = 20, 4

// barCells is the length of the bar for all of a request's TTFT.
const barCells = 30

// writer writes lines of plain ASCII.
type writer struct{ *bufio.Writer }

// line writes one line; whatever came from outside is made harmless here.
func (w writer) line(format string, args ...any) {
	w.WriteString(strings.TrimRight(plain(fmt.Sprintf(format, args...)), " ") + "\n")
}

// title begins a section.
func (w writer) title(format string, args ...any) {
	w.WriteString("\n")
	w.line(format, args...)
}

// plain is a text without control characters and in ASCII: what has no ASCII form becomes "?".
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 'µ':
			return 'u'
		case r == '·':
			return '-'
		case r < ' ' || r == 0x7f:
			return ' '
		case r > 0x7f:
			return '?'
		}
		return r
	}, s)
}

// format is a number as f writes it, or the word for its absence.
func format(n Number, f func(float64) string) string {
	if !n.OK() {
		return n.why()
	}
	return f(n.V)
}

// WriteText writes a summary for people and for terminals of any kind: plain ASCII, in lines of about 80 characters.
func (r *Report) WriteText(out io.Writer) error {
	w := writer{bufio.NewWriter(out)}
	r.writeHead(w)
	r.writeBench(w)
	r.writeRequests(w)
	r.writeLatency(w)
	r.writeThroughput(w)
	r.writeExperts(w)
	r.writeSection(w, r.placementSection())
	r.writeSection(w, r.opsSection())
	r.writeHost(w)
	r.writeVerdicts(w)
	return w.Flush() // the first error sticks
}

func (r *Report) writeHead(w writer) {
	e := &r.Engine
	w.line("llmtop %s - engine %s, %s", r.Version, e.where(), e.State)
	if e.Reason != "" {
		w.line("  %s", e.Reason)
	}
	for _, line := range e.LastLog {
		w.line("  log: %s", line)
	}
	if m := r.Model; m != nil {
		w.line("model %s", strings.Join(append([]string{m.Name + spaced(m.Quantisation)}, m.shape()...), ", "))
	}
	if r.Partial {
		w.line("interrupted: this report is partial")
	}
	for _, kind := range lostKinds() {
		if n := r.Lost[kind]; n > 0 {
			w.line("lost %d %s events: what follows misses them", n, kind)
		}
	}
	if c := r.Cut; c.Requests+c.Tokens > 0 {
		w.line("%d requests and %d tokens are beyond the bounds of a report: counted, not listed", c.Requests, c.Tokens)
	}
}

// where is the engine and, if that is known, what it computes on.
func (e *Engine) where() string {
	if e.Device == "" {
		return e.Name + spaced(e.Version)
	}
	return e.Name + " on " + e.Device + spaced(e.Kernels)
}

// shape is what is known of a model's size and form, in words.
func (m *Model) shape() (known []string) {
	for _, part := range []struct {
		n     Number
		f     func(float64) string
		words string
	}{{m.Parameters, metric.Count, " parameters"}, {m.Bytes, metric.Bytes, ""}, {m.Layers, metric.Count, " layers"}} {
		if part.n.OK() {
			known = append(known, part.f(part.n.V)+part.words)
		}
	}
	switch {
	case m.Experts > 0:
		known = append(known, fmt.Sprintf("%d experts, %d used", m.Experts, m.ExpertsUsed))
	case m.Architecture != nil:
		known = append(known, "dense")
	}
	return known
}

func spaced(s *string) string {
	if s == nil {
		return ""
	}
	return " " + *s
}

func lostKinds() (names []string) {
	for k := range event.NumKinds {
		names = append(names, k.String())
	}
	return names
}

func (r *Report) writeRequests(w writer) {
	t := &r.Totals
	w.title("REQUESTS  finished %d, cancelled %d, failed %d, running %d, queued %d", t.Finished, t.Cancelled, t.Failed, t.Running, t.Queued)
	if len(r.Requests) == 0 {
		return
	}
	w.line("%5s %-10s %-16s %6s %6s %9s %9s %9s %9s", "id", "state", "label", "prompt", "gen", "TTFT", "TPOT", "E2EL", "decode")
	for i := range r.Requests {
		if i == listed {
			w.line("... and %d more", len(r.Requests)-listed)
			break
		}
		q := &r.Requests[i]
		w.line("%5d %-10s %-16.16s %6d %6d %9s %9s %9s %7s/s", q.ID, q.State, plain(q.Label), q.Prompt, q.Generated,
			short(q.TTFT, metric.Seconds), short(q.TPOT, metric.Seconds), short(q.E2EL, metric.Seconds), short(q.DecodeRate, metric.Rate))
	}
	for i := range r.Requests[:min(len(r.Requests), drawn)] {
		r.Requests[i].writeParts(w)
	}
}

// short is a number in a column: "-" where it is absent.
func short(n Number, f func(float64) string) string {
	if !n.OK() {
		return "-"
	}
	return f(n.V)
}

// writeParts draws where a request's TTFT went.
func (q *Request) writeParts(w writer) {
	if len(q.Parts) == 0 || !q.TTFT.OK() {
		return
	}
	kind := "warm"
	if q.Cold {
		kind = "cold, model load included"
	}
	w.title("TTFT of request %d: %s (%s)", q.ID, metric.Seconds(q.TTFT.V), kind)
	for _, p := range q.Parts {
		share := 0.0
		if q.TTFT.V > 0 {
			share = p.Time.V / q.TTFT.V
		}
		mark := ""
		if q.Dominant != nil && *q.Dominant == p.Name {
			mark = "  <- dominant"
		}
		w.line("  %-15s %9s %6s  %s%s", p.Name, metric.Seconds(p.Time.V), metric.Percent(share),
			strings.Repeat("#", int(share*barCells+0.5)), mark)
	}
}

func (r *Report) writeLatency(w writer) {
	w.title("%-10s %7s %9s %9s %9s %9s %9s %9s", "LATENCY", "count", "mean", "p50", "p90", "p95", "p99", "max")
	p := &r.Percentiles
	for _, row := range []struct {
		name string
		d    *Distribution
	}{
		{"TTFT", p.TTFT}, {"TTFT cold", p.ColdTTFT}, {"TPOT", p.TPOT}, {"ITL", p.ITL}, {"STIL", p.STIL}, {"E2EL", p.E2EL},
	} {
		if d := row.d; d != nil {
			w.line("%-10s %7d %9s %9s %9s %9s %9s %9s", row.name, d.Count, metric.Seconds(d.Mean.V), metric.Seconds(d.P50.V),
				metric.Seconds(d.P90.V), metric.Seconds(d.P95.V), metric.Seconds(d.P99.V), metric.Seconds(d.Max.V))
		}
	}
	w.line("stalls     %7d", r.Totals.Stalls)
}

func (r *Report) writeThroughput(w writer) {
	t := &r.Throughput
	w.title("THROUGHPUT")
	w.line("  %-10s %d prompt tokens (%d from a cache), %d generated, in %s", "tokens", r.Totals.PromptTokens, r.Totals.CachedTokens,
		r.Totals.GeneratedTokens, format(r.Totals.Duration, metric.Seconds))
	w.line("  %-10s %s generated over the whole run", "TTPS", perSecond(t.SessionTTPS))
	w.line("  %-10s %s while prompts were processed, last 10 s", "prefill", perSecond(t.Prefill))
	w.line("  %-10s %s while tokens were generated, last 10 s", "decode", perSecond(t.Decode))
	w.line("  %-10s touched a second by decoding: %s; copied by this machine: %s", "memory",
		format(t.Bandwidth, metric.Bytes), format(t.CopyBandwidth, metric.Bytes))
	w.line("  %-10s %s of %s cells in use; a request's are kept for %s (p50)", "KV cache",
		format(r.KV.Used, metric.Count), format(r.KV.Total, metric.Count), median(r.KV.Residency))
	for _, g := range r.Groups {
		if len(r.Groups) > 1 || g.Name != "" {
			w.line("  group %q: %d requests, %d tokens generated, TPS %s", g.Name, g.Requests, g.Generated, perSecond(g.TPS))
		}
	}
}

// perSecond is a rate of tokens with its unit, or the word for its absence.
func perSecond(n Number) string {
	if !n.OK() {
		return n.why()
	}
	return metric.Rate(n.V) + " tokens/s"
}

func median(d *Distribution) string {
	if d == nil {
		return event.NotYet.String()
	}
	return metric.Seconds(d.P50.V)
}

func (r *Report) writeExperts(w writer) {
	x := r.Experts
	if x == nil {
		return
	}
	w.title("EXPERTS  hottest of each layer while decoding (%d tokens)", x.Decode.Tokens)
	for l, b := range x.Decode.Stats {
		if b.Total == 0 {
			w.line("  L%-3d no picks", l)
			continue
		}
		var hot []string
		for _, e := range b.Hot {
			hot = append(hot, fmt.Sprintf("%d (%s)", e, metric.Percent(float64(x.Decode.Layers[l][e])/float64(b.Total))))
		}
		w.line("  L%-3d %-36s max/mean %.1f, entropy %.2f, never picked %d", l, strings.Join(hot, " "), b.MaxMean.V, b.Entropy.V, b.Dead)
	}
}

// describe is what is known of the machine, in a line.
func (m *Machine) describe() string {
	var known []string
	if m.OS != nil && m.Arch != nil {
		known = append(known, *m.OS+"/"+*m.Arch)
	}
	if m.Cores != nil {
		known = append(known, strings.TrimSpace(fmt.Sprintf("%d cores%s", *m.Cores, spaced(m.CPU))))
	}
	if len(known) == 0 {
		return "not reported"
	}
	return strings.Join(known, ", ")
}

// writeSection writes a section that looks the same in every format.
func (r *Report) writeSection(w writer, s section) {
	if len(s.rows) == 0 {
		return
	}
	w.title("%s", strings.ToUpper(s.title))
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if strings.Join(s.header, "") != "" {
		fmt.Fprintln(t, "  "+strings.Join(s.header, "\t"))
	}
	for _, row := range s.rows {
		fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
	}
	_ = t.Flush() // a Builder takes everything
	for line := range strings.Lines(b.String()) {
		w.line("%s", strings.TrimSuffix(line, "\n"))
	}
	for _, words := range s.words {
		w.line("  %s", words)
	}
}

func (r *Report) writeHost(w writer) {
	h, p := &r.Host, &r.Host.Engine
	w.title("HOST  %s", r.Machine.describe())
	if !h.Known {
		w.line("  no sample of the machine came")
		return
	}
	w.line("  CPU %s of the machine, engine's process %s cores", format(h.CPU, metric.Percent), format(p.CPU, metric.Rate))
	w.line("  memory of the process %s, peak %s; machine %s of %s", format(p.RSS, metric.Bytes), format(p.Peak, metric.Bytes),
		format(h.MemoryUsed, metric.Bytes), format(h.Memory, metric.Bytes))
	w.line("  disk read %s (%s operations/s), written %s (%s operations/s)", format(p.ReadSum, metric.Bytes), format(p.ReadOps, metric.Rate),
		format(p.WriteSum, metric.Bytes), format(p.WriteOps, metric.Rate))
	for _, g := range h.GPUs {
		w.line("  GPU %s: %s, %s of %s", g.Name, format(g.Util, metric.Percent), format(g.MemoryUsed, metric.Bytes), format(g.Memory, metric.Bytes))
	}
	if h.NoGPU != nil {
		w.line("  %s", *h.NoGPU)
	}
}

func (r *Report) writeVerdicts(w writer) {
	if len(r.Verdicts) == 0 {
		return
	}
	w.title("VERDICTS")
	for _, v := range r.Verdicts {
		w.line("  %-5s %s", v.Severity, v.Text)
		if v.Try != "" {
			w.line("        try: %s", v.Try)
		}
	}
}
