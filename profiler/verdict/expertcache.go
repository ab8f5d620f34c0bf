package verdict

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
)

// ExpertCache says in one sentence what a cache of experts with so many slots per layer would serve.
func ExpertCache(r *expertcache.Result, slots int) string {
	if need := cachePicks * uint64(r.Experts) * uint64(r.Layers); r.All.Picks < need {
		return fmt.Sprintf("inconclusive: %s picks, at least %s needed", metric.Count(float64(r.All.Picks)), metric.Count(float64(need)))
	}
	policy, share := r.All.Best(slots)
	of := fmt.Sprintf("%d of %d slots per layer serve %s", slots, r.Experts, metric.Percent(share))
	even := metric.Percent(r.Even(slots))
	switch {
	case r.Gain(r.Knee()) < cacheGain:
		return fmt.Sprintf("no gain: picks are nearly even: %s (even picks: %s)", of, even)
	case r.Gain(slots) < cacheGain:
		return fmt.Sprintf("little gain: %s (even picks: %s)", of, even)
	case r.SelfJudged:
		return fmt.Sprintf("%s, of the same picks that chose them (even picks: %s)", of, even)
	}
	out := fmt.Sprintf("%s with %s (even picks: %s)", of, policyNames[policy], even)
	if r.MeanDrift.Moved > cacheDrift*r.MeanDrift.Chance {
		out += fmt.Sprintf("; %s of the routing moved between the halves", metric.Percent(r.MeanDrift.Moved))
	}
	return out
}

var policyNames = [expertcache.NumPolicies]string{expertcache.Static: "a static set", expertcache.LRU: "LRU", expertcache.LFU: "LFU"}
