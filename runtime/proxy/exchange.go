package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// exchange is a request that passes through, and its answer. Those that do not generate have no dialect, and nothing is told of them.
type exchange struct {
	proxy   *Proxy
	writer  http.ResponseWriter
	dialect *dialect
	id      event.RequestID
	group   string
	client  context.Context // ends when the client goes away
	began   event.Time

	mu     sync.Mutex // guards what follows: the request is still being written when the answer comes
	sent   event.Time // when its bytes began to be written; 0 before
	asked  *picker    // nil: the request cannot be read, or has been
	queued bool
	model  string // that was asked for
	end
	status  int
	watched *observer     // nil: there is no answer to read
	over    chan struct{} // of watched: closed when end is set
}

// end is how an exchange ended.
type end struct {
	at      event.Time // of the last byte
	how     error      // io.EOF if the answer came to its end; nil before, or if nobody wanted more of it
	refused bool       // there was no answer
	gone    bool       // the client has gone
}

// limits are the names of the most tokens that a request wants.
var limits = []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "options.num_predict"}

// exchangeKey finds the exchange in the context of its request.
type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// newExchange prepares for a request that has come.
func (p *Proxy) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{proxy: p, writer: w, client: r.Context(), began: p.opt.Clock.Now()}
	if r.Method != http.MethodPost || r.Header.Get("Upgrade") != "" {
		return x
	}
	if x.dialect = dialectOf(r.URL.Path); x.dialect == nil {
		return x
	}
	x.id = event.RequestID(p.last.Add(1))
	if p.opt.GroupHeader != "" {
		x.group = printable(r.Header.Get(p.opt.GroupHeader))
	}
	if e := r.Header.Get("Content-Encoding"); e == "" || e == "identity" {
		x.asked = newPicker(slices.Concat(limits, []string{"model"})...)
	}
	return x
}

// trace follows the request on its way to the server.
func (x *exchange) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { // is followed by the first write
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

// prompt is the body of a request, of which a few names and numbers are kept.
type prompt struct {
	io.ReadCloser
	x *exchange
}

// Read implements io.Reader.
func (b *prompt) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	if b.x.asked != nil {
		b.x.asked.feed(p[:n])
	}
	return n, err
}

// answer is the body of an answer, of which the observer gets a copy.
type answer struct {
	io.ReadCloser
	x   *exchange
	tap *tap
}

// Read implements io.Reader. That it is called again means that what it returned before is on its way to the client.
func (a *answer) Read(p []byte) (int, error) {
	a.tap.wake()
	n, err := a.ReadCloser.Read(p)
	now := a.x.proxy.opt.Clock.Now()
	if n > 0 {
		a.tap.put(p[:n], now)
	}
	if err != nil {
		a.x.ended(now, err, false)
	}
	return n, err
}

// ended notes how the answer ended, or that there is none.
func (x *exchange) ended(at event.Time, how error, refused bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.how == nil {
		x.end = end{at: at, how: how, refused: refused}
	}
}

// answered has the answer observed.
func (x *exchange) answered(res *http.Response) {
	if x.dialect == nil || res.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	x.queue()
	x.mu.Lock()
	defer x.mu.Unlock()
	o := newObserver(x.dialect, x.tell, x.proxy.link.model)
	x.status, x.watched, x.over = res.StatusCode, o, make(chan struct{})
	res.Body = &answer{res.Body, x, o.tap}
	header := res.Header.Clone() // the other one is the client's
	x.proxy.observers.Go(func() {
		o.run(x.status, header)
		if err := x.picks(&o.sum); err != nil {
			x.proxy.note(unrouted(err))
		}
		<-x.over
		x.finish()
	})
}

// close is called when nothing more will pass.
func (x *exchange) close() {
	if x.dialect == nil {
		return
	}
	x.queue()
	x.mu.Lock()
	if x.how == nil {
		x.at = x.proxy.opt.Clock.Now()
	}
	x.gone = x.how == nil || x.how != io.EOF && x.client.Err() != nil
	o := x.watched
	x.mu.Unlock()
	if o == nil {
		x.finish()
		return
	}
	close(x.over)
	o.tap.close()
}

func (x *exchange) tell(e event.Event) {
	e.Req, e.Layer = x.id, -1
	x.proxy.sink.Emit(e)
}

// queue tells of the request, once it is known. The caller does not hold mu, which is held meanwhile: nothing else of the request may be told
// before.
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
	info := &event.Request{Group: x.group, Label: x.dialect.name}
	if x.asked != nil {
		x.model = printable(x.asked.word("model"))
		for _, name := range limits {
			info.MaxTokens = max(info.MaxTokens, x.asked.count(name))
		}
	}
	x.asked = nil
	x.tell(event.Event{Kind: event.KindRequest, At: x.sent, State: event.StateQueued, Data: info})
}
