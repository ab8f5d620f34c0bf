package store

import (
	"math"
	"slices"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// MaxDetail is how many bytes of text, alternatives and picks the tokens of one request keep in total; see ring.bound
// for when it shrinks. Above it, the oldest tokens lose theirs.
const MaxDetail = 256 << 10

// detailSize returns the size in bytes of what trimDetail can remove from the token.
func (t *Token) detailSize() (size int) {
	size = len(t.Text) + len(t.Picks)*int(unsafe.Sizeof(uint16(0))) + len(t.Top)*int(unsafe.Sizeof(event.TopProb{}))
	for i := range t.Top {
		size += len(t.Top[i].Text)
	}
	return size
}

// appendToken appends a token to the bounded lists of a request.
func (r *ring) appendToken(l *liveRequest, t Token) {
	tokens, text, detail := r.bound(MaxTokens), r.bound(MaxText), r.bound(MaxDetail)
	if size := int(unsafe.Sizeof(t)) + t.detailSize(); r.kept+size <= r.keep {
		r.kept, tokens, detail = r.kept+size, math.MaxInt, math.MaxInt
	} else {
		l.bounded = true
	}
	l.text = append(l.text, t.Text...)
	if cut := len(l.text) - text; cut > 0 { // cut a quarter at once, not at every token
		l.text = append(l.text[:0], l.text[max(cut, text/4):]...)
		l.view.TextCut = true
	}
	if limit := l.view.MaxTokens; l.tokens == nil && limit <= r.bound(MaxTokens) { // snapshots share a list that never moves
		l.tokens = make([]Token, 0, limit)
	}
	for i := range evictCount(len(l.tokens), tokens) {
		l.detailBytes -= l.tokens[i].detailSize()
	}
	l.detailBytes += t.detailSize()
	l.tokens = pushOwn(l.tokens, t, tokens, &l.sharedTokens)
	if l.detailBytes > detail {
		l.trimDetail(detail)
	}
}

// trimDetail removes text, picks and alternatives from the oldest tokens until at most half of limit is left, in bytes.
func (l *liveRequest) trimDetail(limit int) {
	l.view.Omitted.Detail = true
	if l.sharedTokens {
		l.tokens, l.sharedTokens = slices.Clone(l.tokens), false
	}
	for i := range l.tokens {
		if l.detailBytes <= limit/2 {
			return
		}
		t := &l.tokens[i]
		l.detailBytes -= t.detailSize()
		t.Text, t.Picks, t.Top = "", nil, nil
	}
}
