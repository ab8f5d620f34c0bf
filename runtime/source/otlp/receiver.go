// Package otlp receives the traces that inference servers send by OTLP over HTTP. It converts them to requests with
// their stages, and to the stages of a model load. It keeps no prompt and no completion.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/loopback"
)

// Options configure a receiver.
type Options struct {
	Listen string   // HOST:PORT; port 0: any free port
	Token  string   // bearer token that senders must send; "": none, allowed only for a loopback address
	Allow  []string // host names, besides loopback names, that requests to a loopback address may use
	Clock  engine.Clock
}

// Receiver is an engine.Source that emits the requests in received traces.
type Receiver struct {
	opt         Options
	listener    net.Listener
	gather      *gather
	busy        chan struct{} // one slot per export being parsed
	translating sync.Mutex    // held while an export in JSON is parsed
	held        atomic.Int64  // bytes of the exports being read
}

// ErrToken means that other machines can reach the address and no token is set.
var ErrToken = errors.New("other machines can reach this address, so it needs a token")

// New starts to listen. Requests are answered only once Run is called. It fails if the address is invalid or in use, or
// if other machines can reach it without a token.
func New(opt Options) (*Receiver, error) {
	host, _, err := net.SplitHostPort(opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("receive traces at %q: write HOST:PORT", opt.Listen)
	}
	if !loopback.Host(host) && opt.Token == "" {
		return nil, fmt.Errorf("receive traces at %s: %w", opt.Listen, ErrToken)
	}
	listener, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		why := err
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			why = op.Err
		}
		return nil, fmt.Errorf("receive traces at %s: %w", opt.Listen, why)
	}
	return &Receiver{opt: opt, listener: listener, busy: make(chan struct{}, maxBusy)}, nil
}

// Address returns the URL to send traces to.
func (r *Receiver) Address() string { return "http://" + r.listener.Addr().String() + tracesPath }

// Close releases the address of a receiver that is not running.
func (r *Receiver) Close() error { return r.listener.Close() }

// Limits on senders.
const (
	maxHeader  = 32 << 10 // bytes
	headerWait = 5 * time.Second
	bodyWait   = 30 * time.Second
	idleWait   = 2 * time.Minute
)

// Run implements engine.Source.
func (r *Receiver) Run(ctx context.Context, sink event.Sink) error {
	r.gather = newGather(r.Address(), r.opt.Clock, sink)
	server := &http.Server{
		Handler: r.handler(), ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true, // the default handler would answer any host
		MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerWait, ReadTimeout: bodyWait, WriteTimeout: bodyWait, IdleTimeout: idleWait,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(r.listener) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.gather.look(time.Now())
		case err := <-served:
			r.gather.end()
			return fmt.Errorf("receive traces at %s: %w", r.Address(), err)
		case <-ctx.Done():
			stop, done := context.WithTimeout(context.Background(), time.Second)
			defer done()
			_ = server.Shutdown(stop) // cuts off unfinished exports; senders retry
			_ = server.Close()
			<-served
			r.gather.end()
			return nil
		}
	}
}

// lookEvery is the interval of checks for requests whose spans are overdue.
const lookEvery = 250 * time.Millisecond
