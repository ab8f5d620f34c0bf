package tap

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

// maxWaiting limits the requests of a connection that wait for answers.
const maxWaiting = 64

// conn reads the requests and answers of one connection.
type conn struct {
	t       *Tap
	flow    *capture.Flow
	in, out framing     // what the client sends, and the server
	upload  *exchange   // whose request is being sent; nil: none
	waiting []*exchange // without a complete answer, oldest first
	gone    event.Time  // when the client closed the connection; 0: it has not
	ignored bool        // nothing more is read
	proven  bool        // there was a message of HTTP

	pipelines bool // the client sends requests before the answers to earlier ones
	torn      bool // the ends of answers may be missing, since requests waited last
	unasked   bool // requests may be missing, since then
}

// Data implements capture.Listener.
func (c *conn) Data(from capture.Side, at time.Time, b []byte) {
	if c.ignored {
		return
	}
	c.t.advance(at)
	if !c.proven {
		if name := foreign(b); name != "" {
			c.ignore(name)
			return
		}
	}
	if from == capture.Client {
		if x := c.upload; x != nil && x.expects && x.status != 0 && c.in.begins(b) { // it does not send the body after this answer
			c.in, c.upload = framing{}, nil
		}
		c.read(&c.in, b)
		return
	}
	c.read(&c.out, b)
	if len(c.waiting) > 0 && c.waiting[0].feed.observer != nil {
		c.waiting[0].feed.observer.Flush()
	}
}

// foreign returns the protocol of the first bytes of a connection, and what to do about it; "": it may be HTTP/1.1.
func foreign(b []byte) string {
	switch {
	case len(b) > 2 && b[0] >= 20 && b[0] <= 23 && b[1] == 3 && b[2] <= 4:
		return "TLS on port %d: nothing to see; tap behind the proxy that ends it"
	case bytes.HasPrefix(b, []byte("PRI * HTTP/2.0")):
		return "HTTP/2 (as of gRPC) on port %d is not read: let clients use HTTP/1.1, or send them through llmtop proxy"
	}
	return ""
}

// ignore stops reading the connection. why is a warning with the port; "": none.
func (c *conn) ignore(why string) {
	if why != "" {
		c.t.server.WarnConnection(fmt.Sprintf(why, c.flow.Server.Port()))
	}
	c.giveUp()
	c.ignored = true
	c.t.held -= len(c.in.held) + len(c.out.held)
	c.in, c.out = framing{}, framing{}
}

// giveUp ends all requests whose ends will not be known.
func (c *conn) giveUp() {
	for len(c.waiting) > 0 {
		c.pop(answers.End{Lost: true, At: c.waiting[0].last})
	}
	c.upload = nil
}

// pop ends the oldest request.
func (c *conn) pop(e answers.End) {
	x := c.waiting[0]
	c.waiting = c.waiting[1:]
	if len(c.waiting) == 0 {
		c.waiting, c.torn, c.unasked = nil, false, false
	}
	if e.At == 0 {
		e.At = max(x.sent, x.last)
	}
	if c.gone != 0 && !e.Lost { // it may still read
		e.Disconnected = true
	}
	x.finish(e)
}

// read reads what one side has sent.
func (c *conn) read(f *framing, b []byte) {
	for begins := true; (len(b) > 0 || f.ended()) && !c.ignored; begins = false {
		held := len(f.held)
		what, piece, n := f.next(b, begins)
		b = b[n:]
		c.t.held += len(f.held) - held
		ok := true
		switch {
		case what == partBroken:
			ok = false
		case len(f.held) > 0 && c.t.held > maxHeld+maxHead:
			c.t.server.WarnConnection(tooMany)
			ok = false
		case what == partHead && f.server:
			ok = c.answered(piece)
		case what == partHead:
			ok = c.requested(piece)
		case what == partFound:
			c.rejoin()
		case what == partBody && f.server:
			if len(c.waiting) > 0 {
				c.waiting[0].put(piece, nil)
			}
		case what == partBody && c.upload != nil:
			c.upload.read(piece)
		case what == partEnd && f.server:
			c.complete()
		case what == partEnd:
			c.sent()
		}
		if !ok {
			c.broken(f)
		}
	}
}

// broken goes on at the next message, after something that cannot be HTTP/1.1.
func (c *conn) broken(f *framing) {
	switch {
	case !c.proven && c.flow.Whole:
		why := ""
		if c.t.opt.Port != 0 {
			why = "what is sent on port %d is not HTTP/1.1"
		}
		c.ignore(why)
	case f.place != nowhere: // a head that cannot be
		c.t.held -= len(f.held)
		f.lose()
		c.tear(f)
	default:
		c.tear(f)
	}
}

// tear notes that it is unknown where the next byte of a side stands.
func (c *conn) tear(f *framing) {
	if !f.server {
		c.upload, c.unasked = nil, true
		return
	}
	c.torn = true
	if len(c.waiting) > 1 {
		if c.pipelines {
			c.ignore("")
			return
		}
		for len(c.waiting) > 1 { // it has sent the next request, so these answers have ended
			c.pop(answers.End{Lost: true})
		}
		c.torn = true
	}
	if len(c.waiting) > 0 && c.waiting[0].status != 0 {
		c.waiting[0].put(nil, answers.ErrLost)
	}
}

// requested begins a request. false: its head cannot be.
func (c *conn) requested(b []byte) bool {
	h, ok := readHead(b, false, c.t.opt.GroupHeader)
	if name := foreign(b); name != "" { // its first bytes came apart
		c.ignore(name)
		return true
	}
	if !ok || !h.chunked && h.coding {
		return false
	}
	c.proven = true
	c.t.passed++
	if c.torn && len(c.waiting) > 0 {
		if c.pipelines {
			c.ignore("")
			return true
		}
		for len(c.waiting) > 0 {
			c.pop(answers.End{Lost: true})
		}
	}
	if len(c.waiting) == maxWaiting {
		c.t.server.WarnConnection(tooMany)
		c.ignore("")
		return true
	}
	x := &exchange{c: c, method: h.method, path: h.path, expects: h.expects, group: h.group, sent: c.t.now}
	c.waiting, c.upload = append(c.waiting, x), x
	if h.method == http.MethodPost {
		if d := answers.Of(h.path); d != nil {
			x.generates(d)
		}
	}
	if x.dialect != nil && !h.encoded {
		x.body, x.compare = answers.NewRequest(), true
	}
	switch {
	case h.chunked:
		c.in.place = atChunkLine
	case h.length > 0:
		c.in.place, c.in.left = inBody, h.length
	default:
		c.sent()
	}
	return true
}

// sent ends a request.
func (c *conn) sent() {
	if c.upload != nil {
		c.upload.queue()
		c.upload = nil
	}
}

// answered begins an answer. false: its head cannot be.
func (c *conn) answered(b []byte) bool {
	h, ok := readHead(b, true, "")
	if !ok {
		return false
	}
	c.proven = true
	if h.status < 200 && h.status != http.StatusSwitchingProtocols {
		return true
	}
	if len(c.waiting) > 0 && (c.waiting[0].status != 0 || c.torn && c.unasked) { // its end is missing, or all of its answer may be
		c.pop(answers.End{Lost: true})
	}
	switch {
	case len(c.waiting) == 0:
		c.waiting = append(c.waiting, &exchange{c: c, joined: true, sent: c.t.now})
	case len(c.waiting) > 1 && !c.torn:
		c.pipelines = true
	}
	x := c.waiting[0]
	c.t.answered(c.flow.Server)
	switch {
	case h.status == http.StatusSwitchingProtocols:
		c.ignore("WebSocket or another protocol on port %d: what follows an upgrade is not read")
		return true
	case x.method == http.MethodConnect && h.status < 300:
		c.ignore("CONNECT on port %d: what passes through a tunnel is not read")
		return true
	}
	if x.dialect == nil {
		c.t.server.Unmeasured(x.method, x.path, h.status, h.header)
	}
	x.answer(h.status, h.header, true)
	x.guesses = x.guesses && h.status == http.StatusOK && answers.IsStream(h.header) && h.header.Get("Content-Encoding") == ""
	switch {
	case x.method == http.MethodHead, h.status == http.StatusNoContent, h.status == http.StatusNotModified:
		c.complete()
	case h.chunked:
		c.out.place = atChunkLine
	case h.coding || h.length < 0:
		c.out.place = untilClose
	case h.length == 0:
		c.complete()
	default:
		c.out.place, c.out.left = inBody, h.length
	}
	return true
}

// rejoin goes on with an answer of which a part is missing, at a chunk.
func (c *conn) rejoin() {
	c.proven = true
	if len(c.waiting) > 0 && c.unasked { // it may be the answer to a request that is missing
		c.pop(answers.End{Lost: true})
	}
	if len(c.waiting) == 0 {
		c.waiting = append(c.waiting, &exchange{c: c, joined: true, sent: c.t.now})
	}
	if x := c.waiting[0]; x.status == 0 {
		x.join()
	}
}

// complete ends an answer.
func (c *conn) complete() {
	if len(c.waiting) > 0 {
		c.pop(answers.End{Complete: true, At: c.t.now})
	}
}

// Gap implements capture.Listener.
func (c *conn) Gap(from capture.Side, at time.Time, n int) {
	if c.ignored {
		return
	}
	c.t.advance(at)
	f := &c.in
	if from == capture.Server {
		f = &c.out
	}
	held := len(f.held)
	known := f.miss(int64(n))
	c.t.held += len(f.held) - held
	switch {
	case !known:
		if c.upload != nil && !f.server {
			c.upload.read(nil)
		}
		c.tear(f)
	case f.server && len(c.waiting) > 0:
		c.waiting[0].put(nil, answers.ErrLost)
	case !f.server && c.upload != nil:
		c.upload.read(nil)
	}
	c.read(f, nil)
}

// Close implements capture.Listener.
func (c *conn) Close(from capture.Side, at time.Time) {
	if c.ignored {
		return
	}
	c.t.advance(at)
	if from == capture.Client {
		c.leave()
		return
	}
	if c.out.place == untilClose {
		c.complete()
	}
	c.fail(answers.ServerClosed)
}

// leave notes that the client has closed the connection. Errors that the server reports from then on are no failures.
func (c *conn) leave() {
	if c.gone != 0 {
		return
	}
	c.gone = max(c.t.now, 1)
	for _, x := range c.waiting {
		x.failed = x.feed.observer != nil && x.feed.observer.Sum.Failed
	}
}

// fail ends all requests: the client closed the connection, or else the server did.
func (c *conn) fail(why string) {
	if c.out.place == nowhere && c.torn {
		c.giveUp()
		return
	}
	for len(c.waiting) > 0 {
		c.pop(answers.End{At: c.t.now, Broken: why, Refused: c.waiting[0].status == 0})
	}
}

// End implements capture.Listener.
func (c *conn) End(at time.Time, why capture.Ending) {
	if c.ignored {
		return
	}
	c.t.advance(at)
	switch why {
	case capture.ResetByClient:
		c.leave()
		c.fail("")
	case capture.ResetByServer:
		c.fail("the connection broke: read: connection reset by peer")
	case capture.Stopped:
		if c.gone != 0 { // the server has not noticed
			c.fail("")
			break
		}
		for _, x := range c.waiting { // how they end is not known yet
			x.leave()
		}
	case capture.Closed:
		c.fail(answers.ServerClosed)
	default:
		c.giveUp()
	}
	c.waiting, c.ignored = nil, true
	c.t.held -= len(c.in.held) + len(c.out.held)
}
