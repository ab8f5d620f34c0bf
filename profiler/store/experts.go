package store

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// expertSlots is how many seconds of cumulative counts are kept, the length of the longest window. One second of 8 x 16
// experts takes 2 KB; of 94 x 256 experts 385 KB, 23 MB for all seconds.
const (
	expertSlots = 60
	// MaxCells bounds layers x experts of a model whose picks are counted.
	MaxCells = 1 << 16
	// maxCheckpoints is how many counts are kept to divide the session into halves. Those of 94 x 256 experts take 6 MB.
	maxCheckpoints = 16
)

// experts keeps the cumulative counts at the end of each second, so that any window is the difference of two of them.
type experts struct {
	layers, experts, used, everyN int
	current                       pickCounts
	baseline                      pickCounts              // counts when the session, or this model, began
	pastCounts                    [expertSlots]pickCounts // counts at the end of second s at s % expertSlots
	pastSecond                    [expertSlots]int64      // the second that each entry of pastCounts ends
	balances                      []BalancePoint          // of those seconds, and of some before
	checkpoints                   []pickCounts            // in the order of time, nearly equal numbers of tokens apart
	checkpointTokens              uint64                  // least number of tokens between two checkpoints
	second                        int64                   // the current second
	lastView                      *Experts
	viewCurrent                   bool // lastView is up to date
}

// pickCounts are cumulative router picks and tokens.
type pickCounts struct {
	counts [2][]uint64 // by metric.Decode and metric.Prompt: picks, indexed [layer*experts+expert]
	tokens [2]uint64
}

func newPickCounts(p *event.Experts) pickCounts {
	return pickCounts{
		counts: [2][]uint64{metric.Decode: p.Decode, metric.Prompt: p.Prompt},
		tokens: [2]uint64{metric.Decode: p.DecodeTokens, metric.Prompt: p.PromptTokens},
	}
}

// same reports whether c and o are the counts of one moment, which are never written again.
func (c *pickCounts) same(o *pickCounts) bool {
	return c.tokens == o.tokens && unsafe.SliceData(c.counts[0]) == unsafe.SliceData(o.counts[0]) && unsafe.SliceData(c.counts[1]) == unsafe.SliceData(o.counts[1])
}

// total returns the tokens of both phases.
func (c *pickCounts) total() uint64 { return c.tokens[0] + c.tokens[1] }

// checkpoint keeps the current counts if enough tokens came since the last checkpoint. When there are too many, it drops
// every second one.
func (x *experts) checkpoint() {
	last := uint64(0)
	if n := len(x.checkpoints); n > 0 {
		last = x.checkpoints[n-1].total()
	}
	if now := x.current.total(); now == 0 || now < last+max(x.checkpointTokens, 1) {
		return
	}
	x.checkpoints = append(x.checkpoints, x.current)
	if len(x.checkpoints) < maxCheckpoints {
		return
	}
	for i := range maxCheckpoints / 2 {
		x.checkpoints[i] = x.checkpoints[2*i+1]
	}
	clear(x.checkpoints[maxCheckpoints/2:])
	x.checkpoints = x.checkpoints[:maxCheckpoints/2]
	x.checkpointTokens = x.current.total() / (maxCheckpoints / 2)
}

// halfway returns the span up to the checkpoint that divides the tokens of a phase best, nil if none does.
func (x *experts) halfway(p metric.Phase) *pickSpan {
	var best *pickCounts
	from, all := x.baseline.tokens[p], x.current.tokens[p]
	distance := func(n uint64) uint64 { return max(2*n, from+all) - min(2*n, from+all) }
	for i := range x.checkpoints {
		c := &x.checkpoints[i]
		if n := c.tokens[p]; n > from && n < all && (best == nil || distance(n) < distance(best.tokens[p])) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	return x.span(&x.baseline, best)
}

// advance stores the current counts for each second that has ended. Seconds without samples get the same counts.
func (x *experts) advance(at event.Time) {
	sec := int64(at) / int64(second)
	if sec <= x.second {
		return
	}
	for ended := max(x.second, sec-expertSlots); ended < sec; ended++ {
		i := ended % expertSlots
		x.balances = push(x.balances, BalancePoint{ended, x.balance(ended)}, 2*expertSlots)
		x.pastCounts[i], x.pastSecond[i] = x.current, ended
	}
	x.second, x.viewCurrent = sec, false
}

// countsAtEndOf returns the counts at the end of second sec: the newest stored ones that are not later, else the
// baseline.
func (x *experts) countsAtEndOf(sec int64) *pickCounts {
	best, found := int64(-1), -1
	for i, n := range x.pastSecond {
		if x.pastCounts[i].counts[0] != nil && n <= sec && n > best {
			best, found = n, i
		}
	}
	if found < 0 {
		return &x.baseline
	}
	return &x.pastCounts[found]
}

// RequestPicks are the router picks since a request was dispatched.
type RequestPicks struct {
	ID         event.RequestID
	Concurrent int // requests that were running when it was dispatched; some of the picks are theirs
	*pickSpan
}

// view returns the picks of all windows and phases. Snapshots share it until the counts or the second change.
func (x *experts) view(at event.Time, request func() *RequestPicks) *Experts {
	x.advance(at)
	if !x.viewCurrent {
		x.lastView, x.viewCurrent = x.compute(at), true
		x.lastView.Request = request()
	}
	return x.lastView
}

func (x *experts) compute(at event.Time) *Experts {
	lastMinute := slices.IndexFunc(x.balances, func(p BalancePoint) bool { return p.Second >= x.second-expertSlots })
	v := &Experts{Layers: x.layers, Experts: x.experts, Used: x.used, EveryN: x.everyN, Balance: slices.Clip(x.balances[max(lastMinute, 0):])}
	for w := range metric.NumWindows {
		from, to := x.window(w, int64(at)/int64(second))
		if x.lastView != nil {
			if last := x.lastView.windows[w]; last.from.same(from) && last.to.same(to) {
				v.windows[w] = last
				continue
			}
		}
		v.windows[w] = x.span(from, to)
	}
	for p := range v.halves {
		v.halves[p] = x.halfway(metric.Phase(p))
	}
	return v
}

// window returns the counts at the start and at the end of a window, which covers the same seconds as a
// metric.Windowed.
func (x *experts) window(w metric.Window, now int64) (from, to *pickCounts) {
	if w == metric.Session {
		return &x.baseline, &x.current
	}
	from, to = x.countsAtEndOf(now-int64(w.Span().Seconds())), &x.current
	if w == metric.Second {
		if before := x.countsAtEndOf(now - 2); before.tokens != from.tokens {
			return before, from
		}
	}
	return from, to
}

// pickSpan is the picks between two moments.
type pickSpan struct {
	layers, experts int
	from, to        pickCounts
	// summaries are computed when they are first asked for: a screen shows few of them.
	summaries [metric.NumPhases]atomic.Pointer[Hits]
}

func (x *experts) span(from, to *pickCounts) *pickSpan {
	return &pickSpan{layers: x.layers, experts: x.experts, from: *from, to: *to}
}

// unsummarised returns the same picks without the summaries that were computed so far, which take more than the counts.
func (x *Experts) unsummarised() *Experts {
	k := *x
	for _, of := range [...][]*pickSpan{k.windows[:], k.halves[:]} {
		for i, s := range of {
			if s != nil {
				of[i] = &pickSpan{layers: s.layers, experts: s.experts, from: s.from, to: s.to}
			}
		}
	}
	return &k
}

// Hits returns the picks of a phase. Every call returns the same.
func (s *pickSpan) Hits(p metric.Phase) *Hits {
	if h := s.summaries[p].Load(); h != nil {
		return h
	}
	counts, tokens := s.between(p)
	s.summaries[p].CompareAndSwap(nil, NewHits(counts, tokens, s.layers, s.experts))
	return s.summaries[p].Load()
}

// between returns the picks of a phase, and its tokens.
func (s *pickSpan) between(p metric.Phase) (counts []uint64, tokens uint64) {
	counts = make([]uint64, s.layers*s.experts)
	for phase := range s.to.counts {
		if p != metric.Both && int(p) != phase {
			continue
		}
		tokens += s.to.tokens[phase] - s.from.tokens[phase]
		for i, c := range s.to.counts[phase] {
			if start := s.from.counts[phase][i]; c > start {
				counts[i] += c - start
			}
		}
	}
	return counts, tokens
}

// NewHits summarises counts of the given number of tokens. It keeps counts.
func NewHits(counts []uint64, tokens uint64, layers, experts int) *Hits {
	h := &Hits{Counts: counts, Tokens: tokens, Layers: make([]LayerHits, layers)}
	for l := range h.Layers {
		row := h.Counts[l*experts : (l+1)*experts]
		layer := LayerHits{Balance: metric.BalanceOf(row)}
		if layer.Hot, layer.Cold = metric.Extremes(row, 3); layer.Total > 0 {
			h.Max = max(h.Max, float64(slices.Max(row))/float64(layer.Total))
		}
		h.Layers[l] = layer
	}
	return h
}
