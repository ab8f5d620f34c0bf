package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// ExpertCache is what a cache of experts would have served, by its slots per layer.
type ExpertCache struct {
	Decode *CachePhase `json:"decode"` // null: no picks
	Prompt *CachePhase `json:"prompt"` // null: no picks
}

// CachePhase is the cache in one phase. The second half of the tokens judges all policies; the first half chooses the
// static set and fills the caches.
type CachePhase struct {
	Summary    string        `json:"summary"`
	Chosen     uint64        `json:"first_half_tokens"`
	Judged     uint64        `json:"judged_tokens"`
	SelfJudged bool          `json:"self_judged"` // only one total is known: the static set is judged by the picks that chose it
	Omitted    uint64        `json:"omitted_tokens"`
	Drift      event.Reading `json:"drift_share"`        // null: only one total
	Chance     event.Reading `json:"drift_chance_share"` // drift expected by chance
	Slots      []int         `json:"slots"`              // numbers of slots per layer, of all curves
	All        CacheCurve    `json:"all"`
	Layers     []CacheCurve  `json:"layers"`
	Kinds      []CacheKind   `json:"kinds"` // by prompt kind, if there are several
}

// CacheCurve is the share of the picks that a cache serves, for each number of slots.
type CacheCurve struct {
	Picks  uint64          `json:"picks"`
	Static []event.Reading `json:"static_share"`
	LRU    []event.Reading `json:"lru_share"` // null: the order of the picks is not reported
	LFU    []event.Reading `json:"lfu_share"` // likewise
}

// CacheKind is the curve of the tokens of one prompt kind.
type CacheKind struct {
	Name   string `json:"name"`
	Tokens uint64 `json:"tokens"`
	CacheCurve
	// Trend is max/mean of each layer over the picks of the kind, [layer][point], oldest first.
	Trend [][]event.Reading `json:"imbalance_trend"`
}

// maxCacheSlots is how many numbers of slots a curve has, besides 0.
const maxCacheSlots = 16

// expertCache returns the caches of both phases; nil without picks.
func expertCache(s *store.Snapshot) *ExpertCache {
	out := &ExpertCache{cachePhase(store.ExpertCache(s, metric.Decode)), cachePhase(store.ExpertCache(s, metric.Prompt))}
	if out.Decode == nil && out.Prompt == nil {
		return nil
	}
	return out
}

func cachePhase(r *expertcache.Result) *CachePhase {
	if r == nil || r.All.Picks == 0 {
		return nil
	}
	out := &CachePhase{
		Summary: verdict.ExpertCache(r, r.Knee()), Chosen: r.Chosen, Judged: r.Judged, SelfJudged: r.SelfJudged, Omitted: r.Omitted,
		Layers: []CacheCurve{}, Kinds: []CacheKind{},
	}
	if !r.SelfJudged {
		out.Drift, out.Chance = Measured(r.MeanDrift.Moved), Measured(r.MeanDrift.Chance)
	}
	parts := min(r.Experts, maxCacheSlots)
	for i := range parts {
		out.Slots = append(out.Slots, (i+1)*r.Experts/parts)
	}
	out.All = out.curve(&r.All)
	for l := range r.ByLayer {
		out.Layers = append(out.Layers, out.curve(&r.ByLayer[l]))
	}
	for i := range r.Kinds {
		k := &r.Kinds[i]
		kind := CacheKind{k.Name, k.Tokens, out.curve(&k.Curve), [][]event.Reading{}}
		for _, layer := range k.Balance {
			points := []event.Reading{}
			for _, v := range layer {
				points = append(points, Measured(float64(v)))
			}
			kind.Trend = append(kind.Trend, points)
		}
		out.Kinds = append(out.Kinds, kind)
	}
	return out
}

// curve returns the shares of a curve at the numbers of slots.
func (p *CachePhase) curve(c *expertcache.Curve) CacheCurve {
	out := CacheCurve{Picks: c.Picks}
	for policy, shares := range [...]*[]event.Reading{&out.Static, &out.LRU, &out.LFU} {
		for _, n := range p.Slots {
			if share, ok := c.Share(expertcache.Policy(policy), n); ok {
				*shares = append(*shares, Measured(share))
			}
		}
	}
	return out
}

// expertCacheSection returns the curves of all layers as a table.
func expertCacheSection(r *Report) section {
	s := section{title: "What a cache of experts would serve", left: 1, header: []string{"slots per layer", "static", "LRU", "LFU", "even picks"}}
	if r.ExpertCache == nil || r.Experts == nil {
		return s
	}
	for _, phase := range []struct {
		name string
		*CachePhase
	}{{"Decode", r.ExpertCache.Decode}, {"Prompt", r.ExpertCache.Prompt}} {
		if p := phase.CachePhase; p != nil {
			s.words = append(s.words, phase.name+": "+p.Summary+". "+p.basis())
			s.rows = append(s.rows, p.rows(phase.name, r.Experts.Experts)...)
		}
	}
	return s
}

// basis says which tokens the curve is based on.
func (p *CachePhase) basis() string {
	if p.SelfJudged {
		return fmt.Sprintf("One total of %s: not judged by other picks; LRU and LFU need their order.", metric.Plural(p.Chosen, "token"))
	}
	out := fmt.Sprintf("Judged by %s, after %d that chose the static set; drift %s, by chance %s.", metric.Plural(p.Judged, "token"), p.Chosen, short(p.Drift, metric.Percent), short(p.Chance, metric.Percent))
	if p.All.LRU == nil {
		out += " LRU and LFU need the order of the picks, which was not reported."
	}
	if p.Omitted > 0 {
		out += fmt.Sprintf(" %s before them are not included.", metric.Plural(p.Omitted, "token"))
	}
	return out
}

// rows returns a few points of the curve.
func (p *CachePhase) rows(name string, experts int) (rows [][]string) {
	cell := func(shares []event.Reading, i int) string {
		if i >= len(shares) {
			return short(event.Reading{}, metric.Percent)
		}
		return short(shares[i], metric.Percent)
	}
	for i, n := range p.Slots {
		if parts := len(p.Slots); (i+1)%max(parts/8, 1) == 0 {
			rows = append(rows, []string{
				fmt.Sprintf("%s, %d of %d", name, n, experts), cell(p.All.Static, i), cell(p.All.LRU, i), cell(p.All.LFU, i),
				metric.Percent(float64(n) / float64(experts)),
			})
		}
	}
	return rows
}
