package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// maxRankCells bounds layers x ranks of a RankLoad: 8 bytes each for the session and each of eleven seconds, 6 MB.
const maxRankCells = 1 << 16

// RankLoad are the picks of experts by layer and rank, of an engine that spreads experts over ranks. It is immutable.
type RankLoad struct {
	Layers          []int // numbers
	Ranks           int
	Recent, Session []uint64 // picks of the last ten seconds and of the session, [i*Ranks+rank] of the layer Layers[i]
}

// Imbalance returns the picks of the busiest rank of each layer, summed over the layers, / the mean picks of a rank: how much
// longer a pass computes experts than if they were balanced, as all ranks wait for the busiest one in each layer. It is NotYet
// without picks.
func (r *RankLoad) Imbalance(picks []uint64) event.Reading {
	if r == nil {
		return event.Absent(event.NotReported)
	}
	most, mean := 0., 0.
	for row := range slices.Chunk(picks, r.Ranks) {
		b := metric.BalanceOf(row)
		most, mean = most+float64(slices.Max(row)), mean+float64(b.Total)/float64(r.Ranks)
	}
	if mean == 0 {
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(most / mean)
}

// OfRank returns the share of picks that a rank computes, and the layer in which it has most more than the mean rank, with
// how many times as much; 0, -1 and 0 without picks.
func (r *RankLoad) OfRank(picks []uint64, rank int) (share float64, layer int, maxMean float64) {
	own, all := uint64(0), uint64(0)
	layer = -1
	for i, row := range slices.Collect(slices.Chunk(picks, r.Ranks)) {
		total := metric.BalanceOf(row).Total
		own, all = event.AddCount(own, row[rank]), event.AddCount(all, total)
		if v := metric.Share(float64(row[rank]), float64(total)) * float64(r.Ranks); v > maxMean {
			layer, maxMean = r.Layers[i], v
		}
	}
	return metric.Share(float64(own), float64(all)), layer, maxMean
}

// rankLoad collects RankLoad. Slices that were stored are not written again.
type rankLoad struct {
	layers  []int
	ranks   int
	session []uint64
	slots   []rankSlot // second s at s % len; nil without ranks
}

// rankSlot are the picks of one second.
type rankSlot struct {
	second int64
	picks  []uint64
}

// add adds the picks of a report. Another shape starts anew.
func (r *rankLoad) add(at event.Time, list []event.LayerRanks) {
	if len(list) == 0 || len(list[0].Picks) == 0 || len(list)*len(list[0].Picks) > maxRankCells {
		return
	}
	ranks, layers, picks := len(list[0].Picks), make([]int, len(list)), []uint64(nil)
	for i, l := range list {
		if len(l.Picks) != ranks {
			return
		}
		layers[i], picks = l.Layer, append(picks, l.Picks...)
	}
	if ranks != r.ranks || !slices.Equal(layers, r.layers) {
		*r = rankLoad{layers: layers, ranks: ranks, slots: make([]rankSlot, balanceSpan+1)}
	}
	r.session = addCounts(r.session, picks)
	sec := int64(at) / int64(second)
	if slot := &r.slots[uint64(sec)%uint64(len(r.slots))]; slot.second == sec {
		slot.picks = addCounts(slot.picks, picks)
	} else {
		slot.second, slot.picks = sec, picks
	}
}

// addCounts returns the sums of two lists of the same length; a may be nil.
func addCounts(a, b []uint64) []uint64 {
	out := slices.Clone(b)
	for i, v := range a {
		out[i] = event.AddCount(v, out[i])
	}
	return out
}

// view returns the load in the ten seconds up to now; nil without a report.
func (r *rankLoad) view(now event.Time) *RankLoad {
	if r.ranks == 0 {
		return nil
	}
	v := &RankLoad{Layers: r.layers, Ranks: r.ranks, Session: r.session, Recent: make([]uint64, len(r.session))}
	for i := range r.slots {
		if s := &r.slots[i]; s.second > int64(now)/int64(second)-balanceSpan && len(s.picks) > 0 {
			v.Recent = addCounts(s.picks, v.Recent)
		}
	}
	return v
}
