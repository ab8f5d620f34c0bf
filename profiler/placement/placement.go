// Package placement decides which experts of a model to keep on the faster device, and writes that in the formats of
// engines.
package placement

import (
	"cmp"
	"math"
	"slices"
)

// Input is what is known of the experts of a model. Layers without experts have counts of 0.
type Input struct {
	Counts      [][]uint64 // picks by layer and expert
	Used        int        // experts that a token picks per layer
	ExpertBytes []float64  // size of one expert of each layer in bytes
	Batch       int        // tokens of a pass: they share the experts that several of them pick
}

// Plan is what stays on the faster device.
type Plan struct {
	Kept   [][]int // experts by layer, ascending
	Bytes  float64
	Served float64 // share of the picks, 0 to 1
	// SlowBytes is how many bytes of experts a token reads from the slower memory: those of the experts that a pass
	// touches there, divided by its tokens. It assumes that tokens pick independently.
	SlowBytes float64
}

// expert is one expert of one layer.
type expert struct {
	layer, number  int
	share, touched float64 // of the layer's picks; probability that a pass touches it
}

// experts returns all experts with picks in their layer.
func (in *Input) experts() (all []expert) {
	for l, row := range in.Counts {
		total := sum(row)
		for e, n := range row {
			if total > 0 {
				share := float64(n) / float64(total)
				all = append(all, expert{l, e, share, 1 - math.Pow(1-min(share*float64(in.Used), 1), float64(in.Batch))})
			}
		}
	}
	return all
}

func sum(row []uint64) (total uint64) {
	for _, n := range row {
		total += n
	}
	return total
}

// PerExpert returns the plan of an engine that places each expert by itself: those that passes touch most often.
func (in *Input) PerExpert(budget float64) *Plan {
	all := in.experts()
	slices.SortStableFunc(all, func(a, b expert) int { return cmp.Compare(b.touched, a.touched) })
	return in.plan(budget, all, func(e expert) (int, int) { return e.layer, e.number })
}

// WholeLayers returns the plan of an engine that places all experts of a layer together: the layers of which passes touch
// most experts. Of equal layers the last ones are kept, so that the others are the first.
func (in *Input) WholeLayers(budget float64) *Plan {
	all, touched := in.experts(), make([]float64, len(in.Counts))
	for _, e := range all {
		touched[e.layer] += e.touched
	}
	slices.SortStableFunc(all, func(a, b expert) int {
		if math.Abs(touched[a.layer]-touched[b.layer]) > 1e-9*touched[a.layer] {
			return cmp.Compare(touched[b.layer], touched[a.layer])
		}
		return cmp.Compare(b.layer, a.layer)
	})
	return in.plan(budget, all, func(e expert) (int, int) { return e.layer, 0 })
}

// plan keeps experts in their order while they fit. Those with the same group are next to each other and stay together.
func (in *Input) plan(budget float64, all []expert, group func(expert) (int, int)) *Plan {
	p := &Plan{Kept: make([][]int, len(in.Counts))}
	picks := 0.0
	for len(all) > 0 {
		n, size := 1, in.ExpertBytes[all[0].layer]
		l, g := group(all[0])
		for n < len(all) {
			if nextLayer, next := group(all[n]); nextLayer != l || next != g {
				break
			}
			n++
		}
		fits := p.Bytes+size*float64(n) <= budget
		for _, e := range all[:n] {
			weight := float64(sum(in.Counts[e.layer]))
			picks += e.share * weight
			if fits {
				p.Kept[e.layer] = append(p.Kept[e.layer], e.number)
				p.Bytes += size
				p.Served += e.share * weight
			} else {
				p.SlowBytes += e.touched * size / float64(in.Batch)
			}
		}
		all = all[n:]
	}
	for _, kept := range p.Kept {
		slices.Sort(kept)
	}
	p.Served /= max(picks, 1)
	return p
}

// AllBytes returns the size of all experts.
func (in *Input) AllBytes() (bytes float64) {
	for l, row := range in.Counts {
		if sum(row) > 0 {
			bytes += in.ExpertBytes[l] * float64(len(row))
		}
	}
	return bytes
}
