package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
)

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
