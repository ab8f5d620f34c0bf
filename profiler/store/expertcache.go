package store

import (
	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
)

// ExpertCache returns what a cache of experts would have served of a phase: by the picks of single tokens if they were
// reported, else of a static set only. It returns nil without picks. It may take seconds for a large model.
func ExpertCache(s *Snapshot, p metric.Phase) *expertcache.Result {
	switch {
	case p == metric.Decode && s.Picks != nil:
		return expertcache.Run(s.Picks.Log)
	case s.Experts != nil:
		return s.Experts.StaticCache(p)
	}
	return nil
}

// StaticCache returns what a static set of experts would have served of the prompts or while decoding, by the counts of
// both halves of the session; nil without picks.
func (x *Experts) StaticCache(p metric.Phase) *expertcache.Result {
	all, half := x.Hits(metric.Session, p), x.halves[p]
	if all.Tokens == 0 {
		return nil
	}
	if half == nil {
		return expertcache.FromCounts(x.Layers, x.Experts, all.Counts, nil, [2]uint64{all.Tokens})
	}
	first, tokens := half.between(p)
	second := make([]uint64, len(all.Counts))
	for i, n := range all.Counts {
		second[i] = n - min(first[i], n)
	}
	return expertcache.FromCounts(x.Layers, x.Experts, first, second, [2]uint64{tokens, all.Tokens - tokens})
}
