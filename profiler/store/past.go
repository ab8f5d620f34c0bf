package store

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// The bounds of the past that a store keeps.
const (
	// MaxPastBytes is the memory of one store's past: at 40 tokens/s of the built-in model ten minutes.
	MaxPastBytes = 12 << 20
	// MaxPastTime bounds how far back it reaches when little happens.
	MaxPastTime = 15 * time.Minute

	densePast     = 2 * time.Minute // kept second by second; before that, one second in sparseFactor
	sparseFactor  = 5
	maxPastStride = 16 // every Nth second is kept where the budget is small
	minKept       = 3  // snapshots, also where they exceed the budget: one of MaxOpen open requests takes 15 MB
)

// Past holds snapshots of the last minutes: one at the end of each second of the last two minutes, and of one second in
// five before, as far as a budget of bytes reaches. The snapshots share with each other what did not change. It is safe
// for concurrent use.
type Past struct {
	store *Store
	limit func() int // bytes

	// store.mu guards what follows.
	kept   []kept // oldest first
	stride int64  // every Nth second is kept: 1 unless the budget is too small for that
	sum    cost   // of kept
}

// kept is a snapshot of the past.
type kept struct {
	*Snapshot
	cost // nothing for the newest, which shares with the store
}

// Past returns what the store keeps of its past; nil if it keeps nothing.
func (s *Store) Past() *Past { return s.state.past }

// Range returns the earliest and the latest time that At accepts. Both are the present as long as nothing is kept.
func (p *Past) Range() (from, to event.Time) {
	now := p.lock()
	defer p.store.mu.Unlock()
	if len(p.kept) == 0 {
		return now, now
	}
	return min(p.kept[0].Now, now), now
}

// At returns the newest kept snapshot that is not later than a time; nil if the past does not reach back to it.
func (p *Past) At(at event.Time) *Snapshot {
	p.lock()
	defer p.store.mu.Unlock()
	if i := p.upTo(at); i > 0 {
		return p.kept[i-1].Snapshot
	}
	return nil
}

// After returns the oldest kept snapshot that is later than a time; nil if there is none.
func (p *Past) After(at event.Time) *Snapshot {
	p.lock()
	defer p.store.mu.Unlock()
	if i := p.upTo(at); i < len(p.kept) {
		return p.kept[i].Snapshot
	}
	return nil
}

// Until returns all kept snapshots that are not later than a time, oldest first.
func (p *Past) Until(at event.Time) []*Snapshot {
	p.lock()
	defer p.store.mu.Unlock()
	all := make([]*Snapshot, p.upTo(at))
	for i := range all {
		all[i] = p.kept[i].Snapshot
	}
	return all
}

// lock locks the store, keeps the seconds that have ended since the last event, and returns the present.
func (p *Past) lock() (now event.Time) {
	p.store.Drain()
	p.store.mu.Lock()
	now = p.store.now()
	p.store.state.closeSeconds(now)
	return now
}

// upTo returns how many snapshots are not later than a time.
func (p *Past) upTo(at event.Time) int {
	i, found := slices.BinarySearchFunc(p.kept, at, func(k kept, at event.Time) int { return cmp.Compare(k.Now, at) })
	if found {
		i++
	}
	return i
}

// due reports whether the end of a second is to be kept.
func (p *Past) due(sec int64) bool { return p != nil && sec%p.stride == 0 }

// wall returns a time on the wall clock.
func (p *Past) wall(at event.Time) time.Time {
	return p.store.opt.Wall().Add(time.Duration(at - p.store.now()))
}

// keep adds the snapshot of the end of a second, and drops what the past no longer has room for.
func (p *Past) keep(v *Snapshot) {
	if v.Experts != nil {
		v.Experts = v.Experts.unsummarised()
	}
	if n := len(p.kept); n > 0 {
		p.charge(n-1, v)
	}
	p.kept = append(p.kept, kept{Snapshot: v})
	p.thin()
	p.dropHeatmaps()
	p.evict()
}

// charge sets the cost of a snapshot to what the next one does not share.
func (p *Past) charge(i int, next *Snapshot) {
	k := &p.kept[i]
	p.sum.add(&k.cost, -1)
	k.cost = costOf(k.Snapshot, next)
	p.sum.add(&k.cost, 1)
}

// thin drops the seconds that are not multiples of the stride of their age.
func (p *Past) thin() {
	newest := len(p.kept) - 1
	dense := p.kept[newest].Now - event.Time(densePast)
	n, dropped := 0, false // dropped: the one before k
	for i, k := range p.kept {
		stride := p.stride
		if k.Now < dense {
			stride *= sparseFactor
		}
		if i < newest && secondOf(k.Now)%stride != 0 {
			p.sum.add(&k.cost, -1)
			dropped = true
			continue
		}
		p.kept[n] = k
		if n > 0 && dropped { // what the dropped one shared with the one before that is its own now
			p.charge(n-1, k.Snapshot)
		}
		n, dropped = n+1, false
	}
	clear(p.kept[n:])
	p.kept = p.kept[:n]
}

// dropHeatmaps drops the router picks of large models in snapshots older than a minute, and of the oldest ones if all
// take more than half of the budget.
func (p *Past) dropHeatmaps() {
	newest := len(p.kept) - 1
	for i := range p.kept[:newest] {
		k := &p.kept[i]
		minute := p.kept[newest].Now-k.Now > event.Time(time.Minute)
		switch {
		case k.heatmaps == 0:
		case minute && k.heatmaps > largeHeatmaps, p.sum.heatmaps > p.limit()/2:
			p.sum.heatmaps -= k.heatmaps
			k.heatmaps, k.Snapshot = 0, withoutHeatmaps(k.Snapshot)
		case !minute:
			return
		}
	}
}

// withoutHeatmaps returns the snapshot without router picks.
func withoutHeatmaps(v *Snapshot) *Snapshot {
	less := *v
	less.Experts, less.Picks, less.HeatmapsDropped = nil, nil, true
	if v.LastActive != nil {
		less.LastActive = withoutHeatmaps(v.LastActive)
	}
	return &less
}

// evict drops the oldest snapshots while the past exceeds its budget or its time. Where that would leave less than the
// dense part, and it would help, it keeps fewer seconds instead.
func (p *Past) evict() {
	limit, now := p.limit(), p.kept[len(p.kept)-1].Now
	for len(p.kept) > minKept {
		over, reach := p.sum.total() > limit, now-p.kept[0].Now
		switch {
		case over && reach < event.Time(densePast) && p.sum.own > limit/2 && p.stride < maxPastStride:
			p.stride *= 2
			p.thin()
		case over || reach > event.Time(MaxPastTime):
			p.sum.add(&p.kept[0].cost, -1)
			p.kept[0] = kept{}
			p.kept = p.kept[1:]
		default:
			if p.stride > 1 && p.sum.total() < limit/4 {
				p.stride /= 2
			}
			return
		}
	}
}

// PastBudget is a memory budget that the pasts of several stores divide equally, so that a thousand stores take no more
// memory than a few.
type PastBudget struct {
	total   int          // bytes
	members atomic.Int64 // stores
}

// NewPastBudget returns a budget of total bytes.
func NewPastBudget(total int) *PastBudget { return &PastBudget{total: total} }

// minPastBytes is what one store takes at least, however many there are: below it, it would hold a few snapshots only.
const minPastBytes = 48 << 10

// join adds a store and returns its past.
func (b *PastBudget) join(s *Store) *Past {
	b.members.Add(1)
	return &Past{store: s, limit: b.PerStore, stride: 1}
}

// PerStore returns how many bytes each store may take now.
func (b *PastBudget) PerStore() int {
	return min(max(b.total/int(max(b.members.Load(), 1)), minPastBytes), MaxPastBytes)
}
