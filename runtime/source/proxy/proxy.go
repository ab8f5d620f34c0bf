// Package proxy forwards requests from clients to an inference server and measures each one. It passes all bytes on as
// they arrive and reads a copy of the answers of OpenAI, Ollama and Anthropic interfaces. It keeps no prompt and no
// generated text.
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/loopback"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/prompts"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// Options configure a proxy.
type Options struct {
	To          string   // server address: http://HOST:PORT or https://HOST/PATH
	Listen      string   // HOST:PORT; port 0: any free port
	AllowRemote bool     // allow an address in Listen that other machines can reach
	Allow       []string // host names, besides loopback names, that requests to a loopback address may use
	GroupHeader string   // request header with the request's group; "": none
	Clock       engine.Clock
	ExpertsUsed int           // experts picked per token (SGLang's answers do not report it); 0: unknown
	Drain       time.Duration // how long running requests may continue after the proxy is stopped

	headers time.Duration // time limit from the start of headers to their end; 0: headerWithin
}

// Proxy is an engine.Source that emits the requests of external clients.
type Proxy struct {
	opt      Options
	to       *url.URL
	listener net.Listener
	versions *versions
	pass     *httputil.ReverseProxy
	server   *answers.Server
	sink     event.Sink // set by Run
	link     *link

	last      atomic.Uint64  // last request id
	observers sync.WaitGroup // running observers of answers, and comparisons of prompts
	prompts   *prompts.History
	held      atomic.Int64 // bytes of bodies whose prompts are not compared yet

	mu     sync.Mutex // guards the fields below
	live   int        // requests in progress
	ending bool
	idle   chan struct{} // closed when ending is set and live is 0
}

// ErrRemote means that other machines could reach the listen address and Options.AllowRemote is not set.
var ErrRemote = errors.New("other machines could reach the server through it, since the proxy asks for no API key")

// New starts to listen. Requests are forwarded only once Run is called. It fails if To is not a server's address, if
// Listen is in use, or if other machines could reach it without AllowRemote.
func New(opt Options) (*Proxy, error) {
	to, err := fetch.ParseAddress(opt.To, "clients send their own keys")
	if err != nil {
		return nil, err
	}
	if !opt.AllowRemote && !local(opt.Listen) {
		return nil, fmt.Errorf("listen at %s: %w", opt.Listen, ErrRemote)
	}
	listener, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %s", opt.Listen, cause(err))
	}
	if opt.headers == 0 {
		opt.headers = headerWithin
	}
	p := &Proxy{
		opt: opt, to: to, listener: listener, idle: make(chan struct{}),
		versions: newVersions(to, opt.headers), prompts: prompts.NewHistory(),
	}
	p.pass, p.server = p.newPass(), answers.NewServer(opt.Clock.Now, opt.ExpertsUsed)
	p.link = &link{clock: opt.Clock, server: p.server, suspect: make(chan struct{}, 1)}
	return p, nil
}

// cause returns the cause of a network error, without the operation and address that the caller adds itself.
func cause(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// local reports whether only this machine can reach HOST:PORT.
func local(at string) bool {
	host, _, err := net.SplitHostPort(at)
	return err != nil || loopback.Host(host) // an invalid address fails in Listen, with a reason
}

// Close releases the address of a proxy that is not running.
func (p *Proxy) Close() error { return p.listener.Close() }

// Address returns the URL that clients use instead of the server's.
func (p *Proxy) Address() string { return "http://" + p.listener.Addr().String() }

// Target returns the server's URL.
func (p *Proxy) Target() string { return p.to.String() }

// Local reports whether the server's address is on this machine.
func (p *Proxy) Local() bool { return local(address(p.to)) }

// Live returns the number of requests in progress.
func (p *Proxy) Live() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// Warnings returns sentences about what could not be measured well, with the numbers of requests that each applies to.
func (p *Proxy) Warnings() []string { return p.server.Warnings() }

// Run implements engine.Source. When ctx ends, the proxy accepts no more connections; running requests may continue for
// Options.Drain.
func (p *Proxy) Run(ctx context.Context, sink event.Sink) error {
	p.sink = sink
	p.server.Start(sink, event.EngineInfo{
		Name: "proxy " + p.Address() + " → " + p.Target(), Provider: "unknown", Epoch: p.opt.Clock.Epoch(), Caps: event.CapTokens, State: event.EngineStarting,
		Remote: event.Remote{Address: p.Target()},
	})
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{
		Handler:     loopback.NewGuard(p.listener.Addr(), p.opt.Allow).Handler(p),
		BaseContext: func(net.Listener) context.Context { return requests }, ErrorLog: p.pass.ErrorLog,
		MaxHeaderBytes: maxHeader, ReadHeaderTimeout: p.opt.headers, IdleTimeout: idleFor, DisableGeneralOptionsHandler: true,
		Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	var watching sync.WaitGroup
	watching.Go(func() { p.link.watch(ctx, address(p.to)) })
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
	watching.Wait()
	p.versions.close()
	p.server.Stop()
	return err
}

// drain stops the server, at once if no request is running.
func (p *Proxy) drain(server *http.Server, cut context.CancelFunc) {
	ctx, done := context.WithTimeout(context.Background(), p.opt.Drain)
	defer done()
	_ = server.Shutdown(ctx) // cut off what is still running
	cut()
	_ = server.Close()
}

// settle waits until no request is running and all events are emitted.
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

// enter counts an incoming request. It returns false if the proxy is stopping.
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
	if answerLocally(w, r) {
		return
	}
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 is always full duplex
	x := p.newExchange(w, r)
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	ctx = httptrace.WithClientTrace(ctx, x.trace())
	defer x.close()
	p.pass.ServeHTTP(w, r.WithContext(ctx))
}
