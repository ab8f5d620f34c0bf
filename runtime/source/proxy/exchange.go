package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// exchange is one forwarded request and its answer. Requests that do not generate have a nil dialect and emit no
// events.
type exchange struct {
	proxy   *Proxy
	writer  http.ResponseWriter
	dialect *answers.Dialect
	id      event.RequestID
	group   string
	client  context.Context // ends when the client goes away
	began   event.Time

	mu     sync.Mutex          // guards the fields below: the request may still be sent while the answer arrives
	sent   event.Time          // when the first byte was sent to the server; 0: not yet
	body   *answers.Request    // reads the request body; nil: unreadable, or already emitted
	text   []byte              // the body until it is sent, if it is compared
	long   bool                // the body is not compared: too much text is held
	prompt chan *prompts.Print // gets what the prompt has in common with earlier ones; nil: it is not compared
	queued bool                // the queued event was emitted
	model  string              // the requested model
	upload error               // error of reading the client's body; nil: none

	at           event.Time // time of the last byte
	err          error      // io.EOF if the answer is complete; nil while it runs, or if the client stopped reading
	refused      bool       // the server did not answer
	disconnected bool       // the client disconnected

	observer *answers.Observer // nil: no answer to observe
	feed     *answers.Feed     // what it reads
	final    chan struct{}     // closed when the end is final; only set with observer
}

// exchangeKey is the context key of a request's exchange.
type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// newExchange starts the exchange of an incoming request.
func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{proxy: p, writer: w, client: r.Context(), began: p.opt.Clock.Now()}
	if r.Method != http.MethodPost || r.Header.Get("Upgrade") != "" {
		return x
	}
	if x.dialect = answers.Of(r.URL.Path); x.dialect == nil {
		return x
	}
	x.id = event.RequestID(p.last.Add(1))
	if p.opt.GroupHeader != "" {
		x.group = clean.Cut(r.Header.Get(p.opt.GroupHeader), answers.MaxName)
	}
	if e := r.Header.Get("Content-Encoding"); e == "" || e == "identity" {
		x.body = answers.NewRequest()
	}
	return x
}

// trace returns hooks that note when the request is sent.
func (x *exchange) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { // called just before the first write
			x.proxy.link.up()
			x.mu.Lock()
			defer x.mu.Unlock()
			x.sent = x.proxy.opt.Clock.Now()
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				x.queue()
			}
		},
	}
}

// prompt is a request body. It passes everything on, and a Request reads it.
type prompt struct {
	io.ReadCloser
	x *exchange
}

// Read implements io.Reader.
func (b *prompt) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	if b.x.body != nil {
		b.x.body.Feed(p[:n])
		b.x.hold(p[:n])
	}
	if err != nil && err != io.EOF {
		b.x.upload = blame(err)
	}
	return n, err
}

// answer is the body of an answer. The observer gets a copy.
type answer struct {
	io.ReadCloser
	x    *exchange
	feed *answers.Feed
}

// Read implements io.Reader. A second call means that the bytes of the first are on their way to the client, so it
// wakes the observer first.
func (a *answer) Read(p []byte) (int, error) {
	a.feed.Wake()
	n, err := a.ReadCloser.Read(p)
	now := a.x.proxy.opt.Clock.Now()
	if n > 0 {
		a.feed.Put(p[:n], now)
	}
	if err != nil {
		_ = a.x.ended(now, err, false)
	}
	return n, err
}

// ended records how the answer ended, or that there is none, and returns the error to report: if the client's body
// could not be read, that error and not the server's missing answer.
func (x *exchange) ended(at event.Time, how error, refused bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.upload != nil && how != io.EOF {
		how = x.upload
	}
	if x.err == nil {
		x.at, x.err, x.refused = at, how, refused
	}
	return how
}

// answered starts an observer for the answer.
func (x *exchange) answered(res *http.Response) {
	if x.dialect == nil {
		x.proxy.server.Unmeasured(res.Request.Method, res.Request.URL.Path, res.StatusCode, res.Header)
	}
	if x.dialect == nil || res.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	x.queue()
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.proxy.server.Observe(x.dialect, x.emit)
	feed := answers.NewFeed(o.Flush)
	x.observer, x.feed, x.final = o, feed, make(chan struct{})
	res.Body = &answer{res.Body, x, feed}
	status, header := res.StatusCode, res.Header.Clone() // the client's copy may change
	x.proxy.observers.Go(func() {
		o.Read(status, header, feed, feed.At)
		feed.Leave()
		<-x.final
		x.finish()
	})
}

// close ends the exchange, when no more bytes will pass.
func (x *exchange) close() {
	if x.dialect == nil {
		return
	}
	x.queue()
	x.mu.Lock()
	if x.err == nil {
		x.at = x.proxy.opt.Clock.Now()
	}
	x.disconnected = x.err == nil || x.err != io.EOF && x.client.Err() != nil || errors.Is(x.err, errClientGone)
	feed := x.feed
	x.mu.Unlock()
	if feed == nil {
		x.finish()
		return
	}
	close(x.final)
	feed.Close()
}

func (x *exchange) emit(e event.Event) {
	e.Req, e.Layer = x.id, -1
	x.proxy.sink.Emit(e)
}

// queue emits the queued event once, when the request's fields are complete. It holds mu meanwhile, so that no other
// event of the request comes first. The caller must not hold mu.
func (x *exchange) queue() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.queued || x.dialect == nil {
		return
	}
	x.queued = true
	if x.sent == 0 {
		x.sent = x.began
	}
	info := x.dialect.Queued(x.group, x.body)
	x.model, x.body = info.Model, nil
	x.compare()
	x.emit(event.Event{Kind: event.KindRequest, At: x.sent, State: event.StateQueued, Data: info})
}
