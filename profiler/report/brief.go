package report

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// Limits of a summary. Sections that would make it longer than briefLines, or briefBenchLines, are left out.
const (
	briefLines      = 20
	briefBenchLines = 30
	briefFindings   = 3
	briefReplicas   = 10
)

// rendered returns what write writes.
func rendered(write func(writer)) string {
	var b strings.Builder
	w := writer{bufio.NewWriter(&b)}
	write(w)
	_ = w.Flush() // a Builder takes everything
	return b.String()
}

// briefSections returns the sections of a summary, and those that follow if there is room.
func briefSections(r *Report) (must, more []section) {
	switch {
	case r.Bench != nil:
		if must = []section{capacitySection(r)}; must[0].empty() {
			must = []section{benchSection(r)}
		}
		if p := placementSection(r); r.Placement != nil && r.Placement.Chosen != nil {
			p.rows, p.words = nil, p.words[:1] // without the experts of each layer
			must = append(must, p)
		}
		if e := r.Bench.Economics; e != nil && e.Price != nil {
			must = append(must, economicsSection(r))
		}
		client := clientSection(r)
		if c := r.Bench.Client; c != nil && len(c.Limits) > 0 { // the numbers may be those of llmtop
			must = append(must, client)
			client = section{}
		}
		return must, []section{profilesSection(r), client, limitsSection(r)}
	case r.Fleet != nil:
		replicas := r.Fleet.replicasSection()
		if n := len(r.Fleet.Replicas); n > briefReplicas {
			replicas.rows = slices.Concat(replicas.rows[:briefReplicas], replicas.rows[len(replicas.rows)-2:]) // median and sum
			replicas.words = []string{fmt.Sprintf("The first %d of %d.", briefReplicas, n)}
		}
		return []section{replicas}, []section{r.Fleet.outliersSection()}
	}
	latency := latencySection(r)
	latency.rows = slices.DeleteFunc(latency.rows, func(row []string) bool { return row[0] == store.Latencies[store.MaxITL].Name })
	if words := briefParts(ttftParts(r)); words != "" {
		latency.words = append(latency.words, words)
	}
	rates := throughputSection(r)
	rates.rows = rates.rows[:min(len(rates.rows), 3)] // TTPS, prefill, decode
	return []section{latency, rates}, append(reportedSections(r), requestsSection("Requests", r.Requests))
}

// briefParts returns the TTFT components of at least 1 % in a sentence, the longest first; "" without any.
func briefParts(parts Parts, note string) string {
	total, _ := parts.total()
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Time.V, a.Time.V) })
	var words []string
	for i := range parts {
		if total > 0 && parts[i].Time.V >= total/100 {
			words = append(words, parts[i].text(total))
		}
	}
	if len(words) == 0 {
		return ""
	}
	if note != "" {
		note = ", " + note
	}
	return "Mean TTFT" + note + ": " + strings.Join(words, ", ") + "."
}

// worstFindings returns the most severe insights, without their evidence.
func worstFindings(r *Report) []verdict.Verdict {
	all := slices.Clone(r.Verdicts)
	slices.SortStableFunc(all, func(a, b verdict.Verdict) int { return cmp.Compare(b.Severity, a.Severity) })
	all = all[:min(len(all), briefFindings)]
	for i := range all {
		all[i].Evidence = ""
	}
	return all
}
