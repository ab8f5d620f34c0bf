package store

import (
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestRankLoad plants the picks of four ranks in two layers.
func TestRankLoad(t *testing.T) {
	p := newSession() // at 1 s
	report := func(wait int64, picks ...[]uint64) Aggregates {
		r := &event.Aggregates{Interval: sec}
		for i, row := range picks {
			r.ExpertRanks = append(r.ExpertRanks, event.LayerRanks{Layer: 3 + i, Picks: row})
		}
		p.emit(wait, event.Event{Kind: event.KindAggregates, Data: r})
		return p.store.Snapshot().Aggregates
	}
	if load := report(0).RankLoad; load != nil {
		t.Errorf("%+v without a report", load)
	}
	want(t, "imbalance without a report", (*RankLoad)(nil).Imbalance(nil), "not reported")
	load := report(sec, []uint64{0, 0, 0, 0}, []uint64{0, 0, 0, 0}).RankLoad
	want(t, "imbalance without picks", load.Imbalance(load.Recent), "not yet")
	report(sec, []uint64{10, 10, 10, 10}, []uint64{10, 10, 10, 10})
	load = report(100*ms, []uint64{30, 0, 0, 10}, []uint64{0, 0, 0, 40}).RankLoad
	// Layer 3 has 40, 10, 10, 20, layer 4 has 10, 10, 10, 50: the busiest ranks have 90, the mean ranks 40.
	want(t, "imbalance", load.Imbalance(load.Recent), 90./40)
	if share, layer, most := load.OfRank(load.Recent, 3); share != 70./160 || layer != 4 || most != 50./20 {
		t.Errorf("rank 3: %v of the picks, most in layer %d with %v times the mean", share, layer, most)
	}
	load = report(12*sec, []uint64{1, 1, 1, 1}, []uint64{1, 1, 1, 1}).RankLoad
	want(t, "imbalance after the window", load.Imbalance(load.Recent), 1.)
	want(t, "imbalance of the session", load.Imbalance(load.Session), 92./42)
	points := p.store.Snapshot().Throughput.Series.Points(nil)
	if !slices.ContainsFunc(points, func(v RatePoint) bool { return v.RankImbalance == 90./40 }) {
		t.Errorf("no second has the imbalance: %+v", points)
	}
	if load = report(sec, []uint64{5, 5}).RankLoad; load.Ranks != 2 || !slices.Equal(load.Session, []uint64{5, 5}) {
		t.Errorf("another shape does not start anew: %+v", load)
	}
	if load = report(sec, []uint64{5, 5}, []uint64{5}).RankLoad; !slices.Equal(load.Session, []uint64{5, 5}) {
		t.Errorf("a malformed report counts: %+v", load)
	}
}
