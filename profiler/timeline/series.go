package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

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
	for l := range to.Layers {
		picks, order, total := make([]uint64, to.Experts), make([]int, to.Experts), uint64(0)
		for x := range picks {
			i := l*to.Experts + x
			picks[x], order[x] = since(from.Prompt, to.Prompt, i)+since(from.Decode, to.Decode, i), x
			total += picks[x]
		}
		if total == 0 {
			return nil
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(picks[b], picks[a]) })
		var words []string
		for _, x := range order[:min(topPicks, len(order))] {
			words = append(words, fmt.Sprintf("%d: %.1f %%", x, 100*float64(picks[x])/float64(total)))
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
