package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// series is one reading of the machine or of a process over time.
type series struct {
	name     string
	averaged bool // over the interval of the sample; otherwise read at its end
	of       func(*event.Host) event.Reading
}

// hostSeries are the readings that the screen shows as series.
var hostSeries = func() (out []series) {
	for _, r := range event.HostReadings {
		if r.Gauge == event.NoGauge {
			continue
		}
		unit := string(r.Unit)
		averaged := unit == "1" || unit == "W" || unit == "ns" || unit == "{core}" || strings.HasSuffix(unit, "/s")
		out = append(out, series{named(r.Title, r.Unit), averaged, r.Of})
	}
	return out
}()

// named returns a name with its unit.
func named(name string, unit event.Unit) string {
	if words := unit.String(); words != "" {
		return name + " [" + words + "]"
	}
	return name
}

// topPicks is how many experts of a layer are named.
const topPicks = 4

// mostPicked returns, for each layer, the experts that were picked most between two counts, with their shares; nil
// without picks.
func mostPicked(from, to *event.Experts) (layers []string) {
	type load struct {
		expert int
		n      uint64
	}
	for l := range to.Layers {
		loads, total := make([]load, 0, to.Experts), uint64(0)
		for x := range to.Experts {
			i := l*to.Experts + x
			n := since(from.Prompt, to.Prompt, i) + since(from.Decode, to.Decode, i)
			loads, total = append(loads, load{x, n}), total+n
		}
		if total == 0 {
			return nil
		}
		slices.SortStableFunc(loads, func(a, b load) int { return cmp.Compare(b.n, a.n) })
		var words []string
		for _, x := range loads[:min(topPicks, len(loads))] {
			words = append(words, fmt.Sprintf("%d: %.1f %%", x.expert, 100*float64(x.n)/float64(total)))
		}
		layers = append(layers, strings.Join(words, ", "))
	}
	return layers
}

// since returns how much a count grew.
func since(from, to []uint64, i int) uint64 {
	switch {
	case i >= len(to):
		return 0
	case i >= len(from):
		return to[i]
	}
	return to[i] - min(from[i], to[i])
}
