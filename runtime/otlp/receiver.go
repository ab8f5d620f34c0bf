// Package otlp takes the traces that inference servers send by OTLP over HTTP and makes requests of them, with the stages that the servers tell,
// and the waterfall of a model's load. Nothing of a prompt or a completion is kept.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
)

// Options say where a receiver listens.
type Options struct {
	Listen string // HOST:PORT; port 0: any
	Token  string // that senders must know; "" for none, which only a loopback address may do without
	Clock  runtime.Clock
}

// Receiver is a runtime.Source whose requests are those that servers elsewhere have told of.
type Receiver struct {
	opt      Options
	listener net.Listener
	gather   *gather
	busy     chan struct{} // a place for each export that is taken apart
	held     atomic.Int64  // bytes of the exports that are being read
}

// ErrToken is the error of an address that other machines can reach without a token.
var ErrToken = errors.New("other machines can reach this address, so it needs a token")

// New begins to listen; nothing is answered before Run. Errors: the address is taken or none, or others could reach it.
func New(opt Options) (*Receiver, error) {
	host, _, err := net.SplitHostPort(opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("receive traces at %q: write HOST:PORT", opt.Listen)
	}
	ip := net.ParseIP(host)
	if loopback := host == "localhost" || ip != nil && ip.IsLoopback(); !loopback && opt.Token == "" {
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

// Address is where traces are to be sent.
func (r *Receiver) Address() string { return "http://" + r.listener.Addr().String() + tracesPath }

// Close gives the address up of a receiver that is not run.
func (r *Receiver) Close() error { return r.listener.Close() }

// The bounds on those who send.
const (
	maxHeader  = 32 << 10 // bytes
	headerWait = 5 * time.Second
	bodyWait   = 30 * time.Second
	idleWait   = 2 * time.Minute
)

// Run implements runtime.Source.
func (r *Receiver) Run(ctx context.Context, sink event.Sink) error {
	r.gather = newGather(r.Address(), r.opt.Clock, sink)
	r.gather.begin()
	server := &http.Server{
		Handler: r.handler(), ErrorLog: log.New(quiet{}, "", 0),
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
			_ = server.Shutdown(stop) // exports that are not over by then are cut off, and sent again to whoever listens next
			_ = server.Close()
			<-served
			r.gather.end()
			return nil
		}
	}
}

// lookEvery is how often it is looked whether spans that were waited for have not come.
const lookEvery = 250 * time.Millisecond

// quiet swallows what the server has to say of connections that break.
type quiet struct{}

// Write implements io.Writer.
func (quiet) Write(p []byte) (int, error) { return len(p), nil }

// listed is words with commas between them.
func listed(words []string) string { return strings.Join(words, ", ") }
