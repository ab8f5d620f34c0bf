//go:build amd64 || arm64

package probe

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// Bounds of what is remembered of connections and texts.
const (
	maxTexts   = 256                  // tokenized texts that no prompt has matched yet
	maxThreads = 4096                 // threads with transfers
	textAge    = int64(10 * 60 * 1e9) // ns that a text waits for its prompt
)

// sendWait is how long the events of a request are held after its first token, in ns, while nothing of its answer leaves.
const sendWait = int64(50e6)

// continueBytes is the size of "HTTP/1.1 100 Continue", which a server sends before it reads the rest of a request.
const continueBytes = int32(len("HTTP/1.1 100 Continue\r\n\r\n"))

// exchange is a request on a connection with its answer, as seen by the thread that handles both.
type exchange struct {
	fd       int32
	received int64 // first byte
	headers  bool  // those of the answer were sent alone: it is streamed
	ended    bool  // what was sent last ends with an empty line, as a streamed answer does
	sent     int64 // last byte of the answer so far, without its headers; 0: none
	closed   int64 // the other side had closed the connection; 0: not seen
	doubtful bool  // the thread left another request without an answer: it may handle several in turns
	matched  bool  // a request was matched to it
	first    *request
}

// open reports whether the answer has not begun.
func (x *exchange) open() bool { return x.closed == 0 && x.sent == 0 && !x.headers }

// text is a tokenized text.
type text struct {
	tid        uint32
	exchange   *exchange // in which it was tokenized; nil: unknown
	began, end int64
	tokens     []int32
	missing    int // tokens that have not come yet
}

// addText adds a part of a tokenized text.
func (t *tracker) addText(r record, d *probesTokenized) {
	if d.First == 0 {
		if len(t.texts) == maxTexts {
			t.texts = slices.Delete(t.texts, 0, 1)
		}
		x := t.threads[r.Tid]
		if x != nil && (!x.open() || x.doubtful || x.received > d.Began) {
			x = nil
		}
		t.texts = append(t.texts, &text{tid: r.Tid, exchange: x, began: d.Began, tokens: make([]int32, 0, d.Total), missing: int(d.Total)})
	}
	for i := len(t.texts) - 1; i >= 0; i-- {
		if x := t.texts[i]; x.tid == r.Tid && x.missing > 0 {
			if len(x.tokens) == int(d.First) && d.N > 0 {
				x.tokens = append(x.tokens, d.Token[:d.N]...)
				x.missing = int(d.Total) - len(x.tokens)
				x.end = r.At
			}
			return
		}
	}
}

// matching removes and returns the tokenized text that continues with these tokens at a position of a sequence. It
// returns nil if several texts do that, unless they are parts of the same request.
func (t *tracker) matching(s *sequence, at int, tokens []int32) *text {
	var found []*text
	for _, x := range t.texts {
		if x.missing == 0 && at+len(tokens) <= len(x.tokens) && slices.Equal(x.tokens[at:at+len(tokens)], tokens) {
			found = append(found, x)
		}
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(x *text) bool { return !s.begins(x.tokens[:at]) })
	}
	several := func(x *text) bool { return x.exchange == nil || x.exchange != found[0].exchange }
	if len(found) == 0 || len(found) > 1 && slices.ContainsFunc(found, several) {
		return nil
	}
	t.texts = slices.DeleteFunc(t.texts, func(x *text) bool { return x == found[0] })
	return found[0]
}

// restarts reports whether a tokenized text is the content of a sequence up to a position, with these tokens at its
// end: the prompt of another request.
func (t *tracker) restarts(s *sequence, at int, tokens []int32) bool {
	return slices.ContainsFunc(t.texts, func(x *text) bool {
		return x.missing == 0 && len(x.tokens) == at+len(tokens) && slices.Equal(x.tokens[at:], tokens) && s.begins(x.tokens[:at])
	})
}

// forget forgets the texts of a request on a connection.
func (t *tracker) forget(x *exchange) {
	t.texts = slices.DeleteFunc(t.texts, func(text *text) bool { return text.exchange == x })
}

// addTransfer notes what a thread received and sent.
func (t *tracker) addTransfer(r record, d *probesTransfer) {
	const brokenPipe, reset = -32, -104 // errors of Linux
	x := t.threads[r.Tid]
	switch {
	case r.Kind == kindReceived && d.Bytes > 0:
		if x != nil && x.fd == d.Fd && x.open() {
			return // more of the same request
		}
		if len(t.threads) == maxThreads {
			clear(t.threads)
		}
		next := &exchange{fd: d.Fd, received: r.At, doubtful: x != nil && x.open()}
		if x != nil {
			t.forget(x)
		}
		t.threads[r.Tid] = next
	case x == nil || x.fd != d.Fd: // its request came before the probes
	case x.sent == 0 && d.Headers != 0:
		x.headers = d.Bytes != continueBytes
	case d.Bytes > 0:
		x.sent, x.ended = r.At, d.Headers != 0 || d.Bytes == 2 // "0\r\n" and the empty line may be sent apart
		t.answer(x)
	case d.Bytes == 0 && r.Kind == kindReceived, d.Bytes == brokenPipe, d.Bytes == reset:
		if x.closed == 0 {
			x.closed = r.At
		}
		if !x.matched {
			t.forget(x)
		}
	}
}

// answer notes that bytes of an answer have left.
func (t *tracker) answer(x *exchange) {
	if !x.matched {
		t.forget(x) // these texts are no prompts that wait
		return
	}
	r := x.first
	if r == nil || !r.held {
		return
	}
	if r.sent == 0 && x.sent >= r.firstAt {
		r.sent = x.sent
	}
	if r.computed {
		t.release(r)
	}
}

// hold holds the events of a request from its first token on, until it is known when that left. Only then TTFT is known.
func (t *tracker) hold(r *request, at int64) {
	if x := r.exchange; x != nil && x.first == nil {
		x.first, r.held, r.firstAt = r, true, at
	}
}

// release emits the held events of a request. Its first token was sent at r.sent, if that is not 0.
func (t *tracker) release(r *request) {
	if !r.held {
		return
	}
	r.held = false
	if r.sent != 0 {
		t.about(r, event.Event{Kind: event.KindStage, Stage: event.StageSend, Dur: r.sent - r.firstAt}, r.sent)
	}
	for _, e := range r.events {
		t.sink.Emit(e)
	}
	r.events = nil
}

// embedded reports whether a request without tokens of its own was answered.
func (r *request) embedded(c *llamaContext) bool {
	x := r.exchange
	return !c.samples && r.promptDone && r.generated == 0 && x != nil && x.sent > r.active
}

// cancelled reports whether the other side left before the answer was complete: nothing was sent after the last pass, or
// not the end of a stream.
func (r *request) cancelled() bool {
	x := r.exchange
	return x != nil && x.closed != 0 && (x.sent < r.active || x.headers && !x.ended)
}
