package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
)

// charts show the histograms that a server counts of what its users wait for, in its own buckets.
func (r *Reported) charts() (out []chart) {
	if r == nil {
		return nil
	}
	for _, of := range []struct{ name, title string }{
		{event.TimesTTFT, "TTFT"}, {event.TimesITL, "ITL"}, {event.TimesTPOT, "TPOT"}, {event.TimesE2EL, "E2EL"},
	} {
		i := slices.IndexFunc(r.Times, func(t ReportedTimes) bool { return t.Name == of.name })
		if i >= 0 {
			out = append(out, r.Times[i].chart(of.title))
		}
	}
	return out
}

// chart has a bar for each bucket from the first to the last in which there is something.
func (t *ReportedTimes) chart(title string) chart {
	c := chart{Title: title, Note: "requests in each bucket, as the server counts them", Width: chartWidth}
	if t.Name == event.TimesITL {
		c.Note = "gaps in each bucket, as the server counts them"
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

// bucket says where a bucket begins and ends.
func (t *ReportedTimes) bucket(i int) string {
	switch {
	case i == 0:
		return "up to " + metric.Seconds(t.Bounds[0])
	case i == len(t.Bounds):
		return "above " + metric.Seconds(t.Bounds[i-1])
	}
	return fmt.Sprintf("%s to %s", metric.Seconds(t.Bounds[i-1]), metric.Seconds(t.Bounds[i]))
}

// tail is as much of the end of a replica's name as there is room for beside a bar: there it differs from the others'.
func tail(name string) string {
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

// ttftChart compares replicas.
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
			c.bar(tail(shown[i].Name), n.Value.V/most, bounded(metric.Seconds(n.Value.V), n.Bound))
		}
	}
	if more := len(f.Replicas) - replicasDrawn; more > 0 {
		c.Note += fmt.Sprintf(", %d more are not drawn", more)
	}
	return c
}
