package gather

import (
	"maps"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/prom"
)

// expertRanks collects the picks of experts by layer and rank. SGLang has them as a histogram by layer whose buckets are the
// ranks, cumulative as all buckets.
type expertRanks struct {
	text  map[int][]float64 // buckets of the current text by layer
	last  map[int][]float64 // of the text before
	picks map[int][]uint64  // since the last report
}

// The bounds of layers and ranks: samples above them are ignored.
const (
	maxExpertLayers = 256
	maxExpertRanks  = 256
)

// add adds a sample: how many picks of a layer were computed by the ranks up to that of its bucket.
func (x *expertRanks) add(l prom.Labels, v float64) {
	layer, err := strconv.Atoi(l.Get("layer"))
	bound, ok := prom.ParseBound(l.Raw("le"))
	if err != nil || !ok || layer < 0 || layer >= maxExpertLayers || !(bound >= 0 && bound < maxExpertRanks) {
		return // the last bucket has no bound, and the same count as the last rank
	}
	if x.text == nil {
		x.text = map[int][]float64{}
	}
	row := x.text[layer]
	for len(row) <= int(bound) {
		row = append(row, 0)
	}
	row[int(bound)] = v
	x.text[layer] = row
}

// finish ends a complete text: it adds the increases since the last one.
func (x *expertRanks) finish() {
	if x.last != nil && x.picks == nil {
		x.picks = map[int][]uint64{}
	}
	for layer, row := range x.text {
		if x.last == nil { // the first text: nothing to compare with
			break
		}
		before, sum := x.last[layer], x.picks[layer]
		if len(before) != len(row) || before[len(row)-1] > row[len(row)-1] { // new, or reset
			before = make([]float64, len(row))
		}
		if len(sum) != len(row) {
			sum = make([]uint64, len(row))
		}
		reached, reachedBefore := 0., 0.
		for rank := range row {
			gain := row[rank] - reached - (before[rank] - reachedBefore)
			reached, reachedBefore = row[rank], before[rank]
			sum[rank] += uint64(max(gain, 0))
		}
		x.picks[layer] = sum
	}
	x.last, x.text = x.text, nil
}

// report returns the picks since the last report, of all layers with picks in the last text.
func (x *expertRanks) report() (out []event.LayerRanks) {
	for _, layer := range slices.Sorted(maps.Keys(x.picks)) {
		out = append(out, event.LayerRanks{Layer: layer, Picks: x.picks[layer]})
	}
	x.picks = nil
	return out
}
