package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
)

// charts draws the latency histograms of a server in its own buckets.
func (r *Aggregates) charts() (out []chart) {
	if r == nil {
		return nil
	}
	for _, h := range []struct{ name, title string }{
		{event.HistogramTTFT, "TTFT"}, {event.HistogramITL, "ITL"}, {event.HistogramTPOT, "TPOT"}, {event.HistogramE2EL, "E2EL"},
	} {
		i := slices.IndexFunc(r.Histograms, func(t ReportedHistogram) bool { return t.Name == h.name })
		if i >= 0 {
			out = append(out, r.Histograms[i].chart(h.title))
		}
	}
	return out
}

// chart draws a bar per bucket, from the first to the last bucket with samples.
func (t *ReportedHistogram) chart(title string) chart {
	c := chart{Title: title, Note: "requests per bucket, counted by the server", Width: chartWidth}
	if t.Name == event.HistogramITL {
		c.Note = "gaps per bucket, counted by the server"
	}
	if len(t.Bounds) == 0 || len(t.Counts) != len(t.Bounds)+1 {
		return c
	}
	most, first, last := uint64(0), len(t.Counts), -1
	for i, n := range t.Counts {
		if most = max(most, n); n > 0 {
			first, last = min(first, i), i
		}
	}
	for i := first; i <= last; i++ {
		c.bar(t.bucket(i), float64(t.Counts[i])/float64(most), metric.Count(float64(t.Counts[i])))
	}
	return c
}

// bucket returns the range of a bucket as text.
func (t *ReportedHistogram) bucket(i int) string {
	switch {
	case i == 0:
		return "up to " + metric.Seconds(t.Bounds[0])
	case i == len(t.Bounds):
		return "above " + metric.Seconds(t.Bounds[i-1])
	}
	return fmt.Sprintf("%s to %s", metric.Seconds(t.Bounds[i-1]), metric.Seconds(t.Bounds[i]))
}

// shortName returns the end of a replica's name, where names differ, as far as it fits beside a bar.
func shortName(name string) string {
	const room = 24
	_, rest, found := strings.Cut(name, "://")
	if !found {
		rest = name
	}
	if r := []rune(rest); len(r) > room {
		return "..." + string(r[len(r)-room+3:])
	}
	return rest
}

// replicasDrawn is how many replicas a chart has at most.
const replicasDrawn = 64

// ttftChart compares the TTFT of replicas.
func (f *Fleet) ttftChart() chart {
	c := chart{Title: "TTFT p50", Note: "of each replica", Width: chartWidth}
	if f == nil {
		return c
	}
	value := func(r *Replica) (FleetNumber, bool) {
		i := slices.IndexFunc(r.Numbers, func(n FleetNumber) bool { return n.Name == fleet.TTFT.JSON() })
		if i < 0 {
			return FleetNumber{}, false
		}
		return r.Numbers[i], true
	}
	shown, most := f.Replicas[:min(len(f.Replicas), replicasDrawn)], 0.0
	for i := range shown {
		if n, ok := value(&shown[i]); ok {
			most = max(most, n.Value.V)
		}
	}
	for i := range shown {
		if n, ok := value(&shown[i]); ok && most > 0 {
			c.bar(shortName(shown[i].Name), n.Value.V/most, bounded(metric.Seconds(n.Value.V), n.Bound))
		}
	}
	if more := len(f.Replicas) - replicasDrawn; more > 0 {
		c.Note += fmt.Sprintf(", %d more not drawn", more)
	}
	return c
}
