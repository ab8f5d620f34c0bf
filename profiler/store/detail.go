package store

import (
	"slices"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
)

// MaxDetail is how many bytes of text, alternatives and picks are kept of the tokens of one request. Beyond, the oldest tokens lose theirs.
const MaxDetail = 256 << 10

// detail is the size of what may be taken from a token, in bytes.
func (t *Token) detail() (size int) {
	size = len(t.Text) + len(t.Picks)*int(unsafe.Sizeof(uint16(0))) + len(t.Top)*int(unsafe.Sizeof(event.TopProb{}))
	for i := range t.Top {
		size += len(t.Top[i].Text)
	}
	return size
}

// keep appends a token to the rings of the request.
func (l *live) keep(t Token) {
	l.text = append(l.text, t.Text...)
	if len(l.text) > MaxText { // cut in large pieces, not at every token
		l.text = append(l.text[:0], l.text[MaxText/4:]...)
		l.view.TextCut = true
	}
	if tokens := l.view.Tokens; len(tokens) >= MaxTokens {
		for i := range tokens[:MaxTokens/4] { // which push drops
			l.detail -= tokens[i].detail()
		}
	}
	l.detail += t.detail()
	l.view.Tokens = push(l.view.Tokens, t, MaxTokens)
	if l.detail > MaxDetail {
		l.trim()
	}
}

// trim takes their detail from the oldest tokens, until half of what is allowed is left.
func (l *live) trim() {
	l.view.Tokens = slices.Clone(l.view.Tokens) // snapshots share the others
	for i := range l.view.Tokens {
		if l.detail <= MaxDetail/2 {
			return
		}
		t := &l.view.Tokens[i]
		l.detail -= t.detail()
		t.Text, t.Picks, t.Top = "", nil, nil
	}
}
