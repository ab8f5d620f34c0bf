package store

import (
	"slices"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// The bounds of frozen requests.
const (
	// maxFrozenDetail bounds the bytes of tokens, gaps and texts of open requests, newest requests first. Requests
	// beyond it keep their last frozenTokens tokens and gaps only.
	maxFrozenDetail = 256 << 10
	frozenTokens    = 32
)

// frozenRing is a compact copy of a ring. Ended requests are kept without per-token data; the rest of them is available
// as long as the store has it.
type frozenRing struct {
	ring                    // without its list
	list  []frozenRequest   // oldest first
	ended []event.RequestID // ids of ended requests, the first to end first
	bytes int               // that it does not share
}

// frozenRequest is one request: slim if it had ended, otherwise live and itl.
type frozenRequest struct {
	slim    *Request
	live    *liveRequest // without its distributions and tokens
	tokens  TokenList    // packed
	itl     *metric.Packed
	gaps    *metric.Packed // of passGaps
	several bool           // there are passGaps
}

// freeze returns a compact copy.
func (r *ring) freeze() frozenRing {
	f := frozenRing{
		ring: ring{
			past: slices.Clip(r.past), halvings: r.halvings, evicted: r.evicted.clone(), overflow: r.overflow.clone(),
		},
		list:  make([]frozenRequest, len(r.byID)),
		ended: make([]event.RequestID, len(r.ended)),
	}
	f.bytes = 40*len(f.evicted.order) + 50*len(f.overflow.requests)
	for i, l := range r.ended {
		f.ended[i] = l.view.ID
	}
	detail, i := 0, len(f.list)
	for l := range r.newestFirst() {
		i--
		to := &f.list[i]
		f.bytes += int(unsafe.Sizeof(*to))
		if l.done != nil {
			if l.slim == nil { // all later frozen states share it
				f.bytes += int(unsafe.Sizeof(Request{}))
			}
			to.slim = l.slimCopy()
			continue
		}
		to.itl, to.live = l.itl.Pack(), l.clone()
		to.live.itl, to.live.passGaps = nil, nil
		if l.passGaps != nil {
			to.gaps, to.several = l.passGaps.Pack(), true
		}
		if detail += to.live.detailSize(); detail > maxFrozenDetail {
			limit := r.bound(frozenTokens)
			to.live.shorten(limit, limit, r.bound(MaxText/8))
		}
		to.tokens, to.live.tokens = TokenList{open: to.live.tokens}.pack(), nil
		f.bytes += int(unsafe.Sizeof(liveRequest{})) + to.live.detailSize() - to.live.detailBytes + to.tokens.size() + to.itl.Size() + to.gaps.Size()
	}
	return f
}

// thaw returns a ring that continues from the frozen one. Ended requests get the per-token data that the ring from
// still has.
func (f *frozenRing) thaw(from *ring) ring {
	r := f.ring
	r.evicted, r.overflow = f.evicted.clone(), f.overflow.clone()
	for i := range f.list {
		l := f.list[i].thaw(from)
		if l.done == nil {
			state := l.view.State
			l.view.State = event.StateNone
			r.setState(l, state)
		}
		r.append(l)
	}
	for _, id := range f.ended {
		r.ended = append(r.ended, r.byID[id])
	}
	return r
}

func (r *frozenRequest) thaw(from *ring) *liveRequest {
	if r.live != nil {
		l := r.live.clone()
		l.tokens = slices.Clip(r.tokens.All())
		l.itl = r.itl.Sparse()
		if r.several {
			l.passGaps = r.gaps.Sparse()
		}
		return l
	}
	full := r.slim
	if l := from.byID[r.slim.ID]; l != nil && l.slim == r.slim {
		full = l.done
	}
	return &liveRequest{view: *full, done: full, slim: r.slim}
}

// clone returns a copy of an open request that shares nothing that will be written to.
func (l *liveRequest) clone() *liveRequest {
	shared := l.share()
	c := *l
	c.view = shared
	c.tokens, c.text, c.choices = slices.Clip(l.tokens), slices.Clone(l.text), slices.Clone(l.choices)
	c.tallyOwner, c.kindTally, c.groupTally, c.lastView, c.older, c.newer = nil, nil, nil, nil, nil, nil
	return &c
}

// detailSize returns the size in bytes of the per-token data.
func (l *liveRequest) detailSize() int {
	return l.detailBytes + len(l.choices)*int(unsafe.Sizeof(metric.Choice{})) + len(l.tokens)*int(unsafe.Sizeof(Token{})) + 8*len(l.view.Gaps) + len(l.text) + len(l.view.Prompt)
}
