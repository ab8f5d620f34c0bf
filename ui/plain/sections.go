package plain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// sections are what the number keys print, in the order of the screen's views.
var sections = []struct {
	name  string
	lines func(*store.Snapshot) []string
}{
	{"overview", overviewLines},
	{"requests", requestListLines},
	{"request", requestLines},
	{"latency", latencyLines},
	{"experts", expertLines},
	{"system", systemLines},
}

// maxListed is how many requests, stalls or experts a section lists.
const maxListed = 10

// Summary describes a session in one line.
func Summary(s *store.Snapshot) string {
	words := []string{s.Engine.State.String()}
	t := s.Totals()
	for _, n := range [...]struct {
		r    event.Reading
		word string
	}{{t.Running, "running"}, {t.Queued, "queued"}, {t.Finished, "finished"}} {
		if n.r.OK() {
			words = append(words, fmt.Sprintf("%.0f %s", n.r.V, n.word))
		}
	}
	if t.FinishedSeen.OK() {
		words = append(words, fmt.Sprintf("at least %.0f finished: %s", t.FinishedSeen.V, store.MissedByPolls))
	}
	if s.Counts.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", s.Counts.Failed))
	}
	words = append(words, "decode "+metric.Reading(s.Throughput.Decode, metric.Rate)+" tokens per second")
	for _, row := range [...]struct {
		name string
		id   store.LatencyID
	}{{"time to first token", store.TTFT}, {"token gaps", store.ITL}} {
		if d := s.Distribution(row.id, metric.Minute); d.P50.Edge != metric.NoQuantile {
			words = append(words, fmt.Sprintf("%s %s at the median, 99th percentile %s", row.name, metric.QuantileOf(d.P50), metric.QuantileOf(d.P99)))
		}
	}
	if n := s.Latency.StallCount[metric.Minute]; n > 0 {
		words = append(words, metric.Plural(n, "stall")+" in the last minute")
	}
	if n := s.Drops.Total(); n > 0 {
		words = append(words, metric.Plural(n, "event")+" dropped")
	}
	return "summary: " + strings.Join(words, ", ")
}

func overviewLines(s *store.Snapshot) []string {
	lines := []string{engineWords(s), Summary(s)}
	for _, v := range s.Verdicts {
		line := sanitize.Line(v.Text)
		if v.Try != "" {
			line += ". To try: " + sanitize.Line(v.Try)
		}
		lines = append(lines, line)
	}
	return lines
}

// noRequest returns why there is no request: words, if the engine reports any.
func noRequest(s *store.Snapshot, words string) []string {
	if s.CallsOnly() {
		words = store.RequestsUnseen
	} else if s.NoPerRequest() {
		words = "per-request metrics: not reported by this engine; measure them with " + s.MeasuredBy()
	}
	return []string{words}
}

func requestListLines(s *store.Snapshot) (lines []string) {
	if len(s.Requests)+len(s.Earlier) == 0 {
		return noRequest(s, "0 requests, the newest first")
	}
	lines = append(lines, metric.Plural(len(s.Requests)+len(s.Earlier), "request")+", the newest first")
	for i, r := range s.Requests {
		if i == maxListed {
			return append(lines, fmt.Sprintf("and %d more", len(s.Requests)-i+len(s.Earlier)))
		}
		words := requestName(r) + ": " + r.Status() + ", " + generated(r)
		if r.TTFT.OK() {
			words += ", time to first token " + metric.Seconds(r.TTFT.V)
		}
		if r.Answer.OK() {
			words += ", first answer token after " + metric.Seconds(r.Answer.V)
		}
		if r.TPOT.OK() {
			words += ", time per token " + metric.Seconds(r.TPOT.V)
		}
		lines = append(lines, words)
	}
	return lines
}

func requestLines(s *store.Snapshot) []string {
	r := s.Current
	if r == nil {
		return noRequest(s, "no request yet")
	}
	lines := []string{startLine(r)}
	if r.TTFT.OK() {
		lines = append(lines, firstTokenLine(r))
	}
	if r.State.Final() {
		lines = append(lines, endLine(r))
	} else {
		lines = append(lines, generated(r)+" so far")
	}
	for i, st := range r.Stalls {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more stalls", r.StallCount()-i))
			break
		}
		lines = append(lines, fmt.Sprintf("stall of %s before token %d, %s", metric.Duration(int64(st.Gap)), st.Index, st.Words()))
	}
	return lines
}

func latencyLines(s *store.Snapshot) (lines []string) {
	for _, row := range [...]struct {
		name string
		id   store.LatencyID
		w    metric.Window
	}{
		{"time to first token", store.TTFT, metric.Minute},
		{"cold time to first token", store.ColdTTFT, metric.Session},
		{"queue", store.STIL, metric.Minute},
		{"token gap", store.ITL, metric.Minute},
		{"time per token", store.TPOT, metric.Minute},
		{"end-to-end latency", store.E2EL, metric.Minute},
	} {
		d := s.Distribution(row.id, row.w)
		if d.Count == 0 {
			why := d.Origin.String()
			if s.Counts.Polled > 0 {
				why = "not reported, " + store.MissedByPolls
			}
			lines = append(lines, row.name+": "+why)
			continue
		}
		words := fmt.Sprintf("%s: %s at the median, 95th percentile %s, 99th percentile %s", row.name, metric.QuantileOf(d.P50), metric.QuantileOf(d.P95), metric.QuantileOf(d.P99))
		if d.P50.Edge == metric.NoQuantile {
			words = row.name + ": mean " + metric.Duration(int64(d.Mean))
		}
		if d.Max.Edge != metric.NoQuantile {
			words += ", longest " + metric.QuantileOf(d.Max)
		}
		lines = append(lines, words+", of "+strconv.FormatUint(d.Count, 10))
	}
	return append(lines, metric.Plural(s.Latency.StallCount[metric.Minute], "stall")+" in the last minute")
}

func expertLines(s *store.Snapshot) []string {
	if s.HeatmapsDropped {
		return []string{"router picks of this moment are no longer kept: those of a large model are kept for a minute"}
	}
	if s.Experts == nil {
		return []string{"no router picks: the model has no experts, or the engine does not report them"}
	}
	h := s.Experts.Hits(metric.Minute, metric.Decode)
	if h == nil || h.Tokens == 0 {
		return []string{"no router picks in the last minute"}
	}
	lines := []string{fmt.Sprintf("%s of %d experts, picks of %s", metric.Plural(s.Experts.Layers, "layer"), s.Experts.Experts, metric.Plural(h.Tokens, "decoded token"))}
	for l := range h.Layers {
		if l == 2*maxListed {
			return append(lines, fmt.Sprintf("and %d more layers", len(h.Layers)-l))
		}
		at := h.Layers[l]
		if at.Total == 0 || len(at.Hot) == 0 {
			continue
		}
		hot := at.Hot[0]
		share := float64(h.Counts[l*s.Experts.Experts+hot]) / float64(at.Total)
		lines = append(lines, fmt.Sprintf("layer %d: hottest expert %d with %s of the picks, %.1f times its even share; %d never picked",
			l, hot, metric.Percent(share), at.MaxMean, at.Dead))
	}
	return lines
}

func systemLines(s *store.Snapshot) []string {
	if !s.Host.Sampled {
		return []string{"no data of the machine yet"}
	}
	h := s.Host
	lines := []string{
		"CPU of the machine " + metric.Reading(h.CPU, metric.Percent),
		"memory in use " + metric.Reading(h.MemUsed, metric.Bytes) + " of " + metric.Reading(h.MemTotal, metric.Bytes),
		"engine: " + metric.Reading(h.Engine.CPU, metric.Cores) + ", resident memory " + metric.Reading(h.Engine.RSS, metric.Bytes) +
			", threads waited for a core " + metric.Reading(h.Engine.RunWait, metric.Percent) + " of the time",
		"disk: read " + metric.Reading(h.Engine.Read, metric.Bytes) + " per second, written " + metric.Reading(h.Engine.Write, metric.Bytes) + " per second",
		"llmtop itself: CPU " + metric.Reading(h.Self.OutsideEngine, metric.Percent) + ", memory " + metric.Reading(h.Self.RSS, metric.Bytes),
	}
	if len(h.GPUs) == 0 {
		return append(lines, "GPU: "+cmp.Or(sanitize.Line(h.NoGPU), event.Absent(event.NotReported).Absence()))
	}
	for i, g := range h.GPUs {
		lines = append(lines, fmt.Sprintf("GPU %d, %s: %s busy", i, sanitize.Line(g.Name), metric.Reading(g.Util, metric.Percent)))
	}
	return lines
}

// alertLines lists the rules with their state.
func alertLines(all []alert.Status) (lines []string) {
	for i := range all {
		s := &all[i]
		lines = append(lines, "alert "+sanitize.Line(s.Name)+": "+strings.ToLower(s.State.String())+", "+s.Value+", condition "+s.When)
	}
	if lines == nil {
		return []string{"no alert is set"}
	}
	return lines
}
