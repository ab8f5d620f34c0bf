// Package proxy sits between clients and a server of theirs and measures every request that passes: it hands everything on as it comes, and
// reads a copy of what the interfaces of OpenAI, Ollama and Anthropic answer. Nothing of a text is kept.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/routed"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// Options say where a proxy listens and what it passes requests on to.
type Options struct {
	To          string // http://HOST:PORT or https://HOST/PATH
	Listen      string // HOST:PORT; port 0: any
	AllowRemote bool   // Listen may be an address that other machines reach
	GroupHeader string // the header of requests that names their group; "": they have none
	Clock       runtime.Clock
	ExpertsUsed int           // experts that each token picks, which SGLang's answers do not say; 0: not known
	Drain       time.Duration // how long requests may go on when the proxy is to end
}

// Proxy is a runtime.Source whose requests are those of clients elsewhere.
type Proxy struct {
	opt      Options
	to       *url.URL
	listener net.Listener
	versions *versions
	pass     *httputil.ReverseProxy
	sink     event.Sink // of Run
	link     *link      // likewise

	picks     routed.Tally
	last      atomic.Uint64  // request id
	passed    atomic.Uint64  // requests of any kind
	observers sync.WaitGroup // of answers

	mu     sync.Mutex // guards what follows
	live   int        // requests that are passing through
	ending bool
	idle   chan struct{} // closed when ending and none is live
	doubts map[doubt]uint64
}

// ErrRemote is the error of an address that other machines can reach, if that is not allowed.
var ErrRemote = errors.New("other machines could reach it, and with it the server, since the proxy asks for no key of its own")

// New begins to listen; nothing is passed on before Run. Errors: To is no address of a server, Listen is taken, or others could reach it.
func New(opt Options) (*Proxy, error) {
	to, err := target(opt.To)
	if err != nil {
		return nil, err
	}
	if !opt.AllowRemote && !loopback(opt.Listen) {
		return nil, fmt.Errorf("listen at %s: %w", opt.Listen, ErrRemote)
	}
	listener, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %s", opt.Listen, cause(err))
	}
	p := &Proxy{
		opt: opt, to: to, listener: listener, idle: make(chan struct{}), doubts: map[doubt]uint64{},
		versions: newVersions(to),
	}
	p.pass = p.newPass()
	return p, nil
}

// cause is an error of the network without what its caller says anyway.
func cause(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// target is the address that paths are appended to: without the /v1 that users are used to give, and without a slash at its end. Secrets do
// not belong into an address, which is shown.
func target(at string) (*url.URL, error) {
	u, err := url.Parse(at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read address: %q is no URL", fetch.Strip(at))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("read address: %q must begin with http://HOST or https://HOST", fetch.Strip(at))
	case u.User != nil:
		return nil, errors.New("read address: it must not hold a user or password: clients send their own keys")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("read address: %q must end with its path", fetch.Strip(at))
	}
	u.RawPath = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), "/v1"), "/")
	u.Path, err = url.PathUnescape(u.RawPath)
	return u, err
}

// loopback reports whether only this machine can reach an address.
func loopback(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return true // listening will fail, and say why
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close gives the address up of a proxy that is not run.
func (p *Proxy) Close() error { return p.listener.Close() }

// Address is what clients use instead of the server's address.
func (p *Proxy) Address() string { return "http://" + p.listener.Addr().String() }

// Target is the server's address.
func (p *Proxy) Target() string { return p.to.String() }

// Local reports whether the server is on this machine, as far as its address tells.
func (p *Proxy) Local() bool { return loopback(address(p.to)) }

// Stats are counts since the proxy began.
type Stats struct {
	Passed   uint64 // requests of any kind
	Observed uint64 // of these, those that generate
	Live     int    // requests that are passing through
}

// Stats is how things stand.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Passed: p.passed.Load(), Observed: p.last.Load(), Live: p.live}
}

// doubt is a sentence about answers of which not all is known.
type doubt string

// The doubts, beside those about answers that cannot be read.
const (
	byMessage doubt = "the server does not tell how many tokens its messages hold: ITL is the time between messages"
	untold    doubt = "the server does not tell how many tokens it has generated: each message with text counts as one"
)

// unread is the doubt about an answer that cannot be read, or not all of it.
func unread(why string) doubt {
	return doubt("an answer could not be read, and was passed on all the same: " + why)
}

// Doubts are sentences about what could not be measured well, and of how many requests each is true.
func (p *Proxy) Doubts() map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]uint64, len(p.doubts))
	for d, n := range p.doubts {
		out[string(d)] = n
	}
	return out
}

// note counts a request of which a doubt is true. The first one is told.
func (p *Proxy) note(d doubt) {
	p.mu.Lock()
	p.doubts[d]++
	first := p.doubts[d] == 1
	p.mu.Unlock()
	if first {
		p.sink.Emit(event.Event{Kind: event.KindLog, At: p.opt.Clock.Now(), Layer: -1, Text: string(d)})
	}
}

// Run implements runtime.Source. When ctx ends no more connections are taken; requests that are passing through may go on for Options.Drain.
func (p *Proxy) Run(ctx context.Context, sink event.Sink) error {
	p.sink, p.link = sink, p.newLink(sink)
	p.link.begin()
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler: p, BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: p.pass.ErrorLog,
		MaxHeaderBytes: maxHeader, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	var beside sync.WaitGroup
	beside.Go(func() { p.link.watch(ctx, address(p.to)) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(p.listener) }()
	var err error
	select {
	case <-ctx.Done():
		p.drain(server, cut)
		<-served
	case err = <-served:
		err = fmt.Errorf("serve %s: %w", p.Address(), err)
		cut()
	}
	p.settle()
	beside.Wait()
	p.versions.close()
	p.link.stop()
	return err
}

// drain ends the server, at once if nothing is passing through.
func (p *Proxy) drain(server *http.Server, cut context.CancelFunc) {
	ctx, done := context.WithTimeout(context.Background(), p.opt.Drain)
	defer done()
	_ = server.Shutdown(ctx) // what it does not end within that time is cut off
	cut()
	_ = server.Close()
}

// settle waits until nothing passes through and all events are out.
func (p *Proxy) settle() {
	p.mu.Lock()
	p.ending = true
	if p.live == 0 {
		close(p.idle)
	}
	p.mu.Unlock()
	<-p.idle
	p.observers.Wait()
}

// enter counts a request that has come, unless it came too late.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ending {
		p.live++
	}
	return !p.ending
}

func (p *Proxy) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live--; p.live == 0 && p.ending {
		close(p.idle)
	}
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.leave()
	p.passed.Add(1)
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 is so anyway
	x := p.newExchange(w, r)
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	ctx = httptrace.WithClientTrace(ctx, x.trace())
	defer x.close()
	p.pass.ServeHTTP(w, r.WithContext(ctx))
}
