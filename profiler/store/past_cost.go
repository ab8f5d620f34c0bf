package store

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
)

// cost is the approximate memory in bytes that a snapshot holds and the next one does not.
type cost struct {
	own      int // of the snapshot itself, and of open requests as they were
	requests int // of ended requests, which fewer snapshots would hold as well
	heatmaps int // of router picks
}

func (c *cost) total() int { return c.own + c.requests + c.heatmaps }

// add adds another cost n times; -1 takes it back.
func (c *cost) add(o *cost, n int) {
	c.own, c.requests, c.heatmaps = c.own+n*o.own, c.requests+n*o.requests, c.heatmaps+n*o.heatmaps
}

// largeHeatmaps is the size from which the router picks of a snapshot are dropped after a minute.
const largeHeatmaps = 64 << 10

// costOf returns the memory of a snapshot that a later one does not share.
func costOf(v, next *Snapshot) (c cost) {
	seconds := int(secondOf(next.Now) - secondOf(v.Now))
	c.own = int(unsafe.Sizeof(*v)) + 8*len(v.Requests) + 64*seconds
	if len(v.Latency.Series) > 0 {
		c.own += seconds * int(unsafe.Sizeof(LatencyPoint{})+unsafe.Sizeof(Spread{}))
	}
	if v.Host.Host != next.Host.Host {
		c.own += int(unsafe.Sizeof(*v.Host.Host)) + seconds*int(unsafe.Sizeof(HostPoint{}))
	}
	if v.Latency.Of != next.Latency.Of {
		c.own += int(unsafe.Sizeof(LatencySummaries{}))
	}
	if v.Losses != nil && v.Losses != next.Losses {
		c.own += int(unsafe.Sizeof(LossView{}))
	}
	c.own += len(v.Aggregates.Numbers) * int(unsafe.Sizeof(ServerNumber{}))
	for _, h := range v.Aggregates.Histograms {
		c.own += int(unsafe.Sizeof(h)+unsafe.Sizeof(*h.BucketsView)) + 256
	}
	if v.LastActive != nil {
		c.own += 2 * int(unsafe.Sizeof(*v))
	}
	c.addRequests(v, next)
	c.heatmaps = expertsBytes(v.Experts, next.Experts) + picksBytes(v.Picks, next.Picks)
	return cost{own: c.own + c.own/8, requests: c.requests + c.requests/8, heatmaps: c.heatmaps + c.heatmaps/8} // allocations are rounded up
}

// addRequests adds the requests of v that next does not have, or has as they are later. Both are in the same order.
func (c *cost) addRequests(v, next *Snapshot) {
	rest := next.Requests
	for _, r := range v.Requests {
		var now *Request
		if i := slices.IndexFunc(rest, func(o *Request) bool { return o.ID == r.ID }); i >= 0 {
			now, rest = rest[i], rest[i+1:]
		}
		if now == r {
			continue
		}
		n := int(unsafe.Sizeof(*r)) + len(r.Text) + len(r.Layers)*int(unsafe.Sizeof(LayerPart{})) + 256 // its parts and waits
		if !r.State.Final() {
			if now == nil || unsafe.SliceData(r.Tokens) != unsafe.SliceData(now.Tokens) {
				n += grown(len(r.Tokens)) * int(unsafe.Sizeof(Token{}))
			}
			for i := range r.Tokens {
				if now == nil { // otherwise the later list has them, too
					n += r.Tokens[i].detailSize()
				}
			}
			if now == nil || unsafe.SliceData(r.Gaps) != unsafe.SliceData(now.Gaps) {
				n += 8 * grown(len(r.Gaps))
			}
			c.own += n
			continue
		}
		for i := range r.Tokens {
			n += int(unsafe.Sizeof(Token{})) + r.Tokens[i].detailSize()
		}
		c.requests += n + len(r.Prompt) + 8*len(r.Gaps) + 4*len(r.Late) +
			len(r.Spans)*int(unsafe.Sizeof(StageSpan{})) + len(r.Stalls)*int(unsafe.Sizeof(Stall{}))
	}
}

// grown returns the capacity of a list that was appended to until it had n entries.
func grown(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// expertsBytes returns the memory of router picks that the next ones do not share: the counts of both phases at the
// start and at the end of each window.
func expertsBytes(x, next *Experts) (n int) {
	if x == nil || x == next {
		return 0
	}
	cells := 8 * x.Layers * x.Experts
	for p, counts := range x.windows[metric.Session].to.counts {
		if next == nil || unsafe.SliceData(counts) != unsafe.SliceData(next.windows[metric.Session].to.counts[p]) {
			n += 2 * cells // at the end of the windows, and at the start of one of them
		}
	}
	n += (int(metric.NumWindows) + len(x.halves)) * int(unsafe.Sizeof(pickSpan{}))
	return n + len(x.Balance)*int(unsafe.Sizeof(BalancePoint{})) + 4*x.Layers
}

// picksBytes is expertsBytes for the picks of single tokens.
func picksBytes(p, next *Picks) (n int) {
	if p == nil || p == next {
		return 0
	}
	later, log := map[*Hits]bool{}, new(expertcache.Log)
	if next != nil {
		log, later[next.All] = next.Log, true
		for _, list := range [...][]NamedPicks{next.Kinds, next.Groups} {
			for i := range list {
				later[list[i].Hits] = true
			}
		}
	}
	add := func(h *Hits) {
		if !later[h] {
			n += hitsBytes(p.Layers, p.Experts)
		}
	}
	add(p.All)
	for _, list := range [...][]NamedPicks{p.Kinds, p.Groups} {
		for i := range list {
			add(list[i].Hits)
		}
	}
	for i := range p.Pairs {
		n += len(p.Pairs[i]) * int(unsafe.Sizeof(Pair{}))
	}
	return n + p.Log.BytesWithout(log)
}

// hitsBytes returns the memory of Hits.
func hitsBytes(layers, experts int) int {
	return 8*layers*experts + layers*int(unsafe.Sizeof(LayerHits{})+2*3*8)
}
