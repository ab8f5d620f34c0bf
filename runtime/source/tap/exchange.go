package tap

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// Bounds of what is kept of requests.
const (
	maxCompared = 1 << 20  // bytes of a request whose prompt is compared with earlier ones
	maxHeld     = 48 << 20 // bytes of all requests and heads that are not complete
	maxLive     = 1 << 14  // requests that are measured at once
	maxGuess    = 64 << 10 // bytes of a line in a stream whose request was not captured
	maxPacked   = 64       // compressed answers at once: a few bytes of one may hold several MB
)

// tooMany is the warning about what is beyond a bound.
const tooMany = "more requests at once than the tap reads: those beyond are not measured"

var (
	errPacked = errors.New("more than 64 compressed answers at once")
	errHeld   = errors.New("too many long messages at once")
)

// exchange is a request and its answer. One that does not generate has no dialect, and emits nothing.
type exchange struct {
	c        *conn
	feed     feed
	last     event.Time // the last byte of the answer, before it of the request
	messages int        // that were read
	unread   int        // bytes of the message in progress
	id       event.RequestID

	method  string
	path    string
	expects bool // waits for 100 Continue before it sends its body
	dialect *answers.Dialect
	joined  bool // the request was not captured

	group   string
	sent    event.Time       // the last byte of the request's head
	body    *answers.Request // nil: unreadable, or already emitted
	compare bool             // text is the body so far
	text    []byte
	model   string
	print   *prompts.Print
	queued  bool
	sets    int // Tap.sets, as far as the observer knows

	status  int    // 0: no answer yet
	guess   []byte // the line in progress of a stream whose dialect is not known yet
	guesses bool
	packed  bool // the answer is compressed
	failed  bool // the server had reported an error when the client closed the connection
}

func (x *exchange) emit(e event.Event) {
	e.Req, e.Layer = x.id, -1
	x.c.t.sink.Emit(e)
}

// generates makes x a request that is measured, unless too many are in progress.
func (x *exchange) generates(d *answers.Dialect) {
	t := x.c.t
	if t.live >= maxLive {
		t.server.Warn(tooMany)
		return
	}
	t.last++
	t.live++
	x.dialect, x.id, x.sets = d, t.last, t.sets
	if x.group == "" && t.opt.GroupHeader == "" {
		x.group = x.c.flow.Client.Addr().Unmap().String()
	}
}

// read reads bytes of the request's body; nil: some are missing.
func (x *exchange) read(b []byte) {
	x.last, x.expects = x.c.t.now, false
	switch t := x.c.t; {
	case x.body == nil:
	case b == nil:
		x.body = nil
		x.drop()
	default:
		x.body.Feed(b)
		if x.compare && (len(x.text)+len(b) > maxCompared || t.held+len(b) > maxHeld) {
			x.drop()
		}
		if x.compare {
			x.text = append(x.text, b...)
			t.held += len(b)
		}
	}
}

// drop drops the text of the request.
func (x *exchange) drop() {
	x.c.t.held -= len(x.text)
	x.text, x.compare = nil, false
}

// queue emits the first event of a request that generates, once: when all of it was sent, or its answer began before that.
func (x *exchange) queue() {
	if x.queued || x.dialect == nil {
		return
	}
	x.queued = true
	t, info, state := x.c.t, x.dialect.Queued(x.group, x.body), event.StateQueued
	if info.RTT = int64(x.c.flow.RTT); x.joined {
		state, x.sent = event.StateDispatched, t.now
	}
	if text := x.text; x.compare && len(text) > 0 {
		x.print = t.prompts.Compare(info.Model, func() []prompts.Unit {
			units, err := prompts.Units(text)
			if err != nil {
				return nil
			}
			return units
		})
	}
	x.model, x.body = info.Model, nil
	x.drop()
	x.emit(event.Event{Kind: event.KindRequest, At: x.sent, State: state, Data: info})
}

// answer begins to read the answer. whole: the beginning of its body was captured. Without a header it is a stream.
func (x *exchange) answer(status int, header http.Header, whole bool) {
	x.status, x.last = status, x.c.t.now
	if x.dialect == nil {
		x.guesses = x.joined
		return
	}
	x.queue()
	o := x.c.t.server.Observe(x.dialect, x.emit)
	if !whole {
		o.Join()
	}
	x.packed = header.Get("Content-Encoding") != ""
	x.feed.start(o, status, header, x.packed)
	if x.compareTimes(); x.packed {
		if x.c.t.packed++; x.c.t.packed > maxPacked {
			x.feed.put(nil, x.last, errPacked)
		}
	}
}

// join begins to read an answer somewhere in its middle.
func (x *exchange) join() {
	x.answer(http.StatusOK, nil, false)
	x.put(nil, answers.ErrLost)
}

// compareTimes notes if the clock was set since it was called last, or since the request.
func (x *exchange) compareTimes() {
	if x.sets != x.c.t.sets {
		x.sets = x.c.t.sets
		x.feed.observer.Unclock()
	}
}

// put reads bytes of the answer's body, and then an error, if that is not nil.
func (x *exchange) put(b []byte, err error) {
	t := x.c.t
	x.last = t.now
	switch {
	case x.feed.observer != nil:
		x.compareTimes()
		x.feed.put(b, t.now, err)
		if n := x.feed.observer.Messages; n != x.messages || x.feed.left {
			x.messages, t.held, x.unread = n, t.held-x.unread, 0
		} else {
			t.held, x.unread = t.held+len(b), x.unread+len(b)
		}
		if x.unread > maxGuess && t.held > maxHeld {
			x.feed.put(nil, t.now, errHeld)
		}
	case x.guesses && err == nil:
		x.recognise(b)
	default:
		x.forget()
	}
}

// forget forgets the line in progress.
func (x *exchange) forget() {
	x.c.t.held -= len(x.guess)
	x.guess = nil
}

// recognise finds out the dialect of a stream by its first message that shows it, and reads the stream from that on.
func (x *exchange) recognise(b []byte) {
	t := x.c.t
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		if b = rest; len(x.guess)+len(line) > maxGuess || t.held+len(line) > maxHeld {
			x.guesses = false
			x.forget()
			return
		}
		x.guess, t.held = append(x.guess, line...), t.held+len(line)
		if !whole {
			return
		}
		line = bytes.TrimSpace(x.guess)
		x.forget()
		message, event := bytes.CutPrefix(line, []byte("data:"))
		d := answers.Recognise(bytes.TrimSpace(message))
		if d == nil || d.Lines == event {
			continue
		}
		x.guesses = false
		if x.generates(d); x.dialect != nil {
			x.answer(x.status, nil, false)
			x.put(append(line, '\n'), nil)
			x.put(rest, nil)
		}
		return
	}
}

// release frees what is counted.
func (x *exchange) release() {
	x.drop()
	x.forget()
	x.c.t.held -= x.unread
	if x.unread = 0; x.packed {
		x.packed = false
		x.c.t.packed--
	}
}

// leave drops what is kept of an exchange that goes on when the capture ends.
func (x *exchange) leave() {
	x.release()
	if x.feed.observer != nil && !x.feed.left {
		x.feed.observer.Flush()
		x.feed.put(nil, x.last, io.ErrUnexpectedEOF)
	}
}

// finish ends the exchange. It adds the times and the model of the request to e.
func (x *exchange) finish(e answers.End) {
	x.release()
	if x.dialect == nil {
		return
	}
	t := x.c.t
	x.queue()
	o := x.feed.observer
	if o != nil {
		x.compareTimes()
		x.feed.put(nil, t.now, io.EOF)
	} else {
		o = t.server.Observe(x.dialect, x.emit)
	}
	e.Sent, e.Model = x.sent, x.model
	if e.Disconnected {
		o.Sum.Failed = o.Sum.Failed && x.failed
	}
	state, outcome := o.Finish(e)
	if state == event.StateCancelled && e.Disconnected {
		e.At = x.c.gone
	}
	if x.print != nil {
		if outcome.Reuse = x.print.Reuse; state == event.StateFinished {
			t.prompts.Keep(x.id, x.print)
		}
	}
	x.emit(event.Event{Kind: event.KindRequest, At: e.At, State: state, Data: &outcome})
	t.live--
}
