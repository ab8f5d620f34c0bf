package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/exposition"
	"github.com/llmtop/llmtop/profiler/store"
)

// exports is what a command that watches something live is told about telling other programs what it measures.
type exports struct {
	listen string // HOST:PORT; "": nobody fetches
	push   string // URL; "": pushed to nobody
	screen bool   // there is one, which must not be written over
	of     string // address of the engine; "": this program runs it
}

func (e *exports) bind(set *pflag.FlagSet) {
	set.StringVar(&e.listen, "metrics-listen", "", "let Prometheus fetch metrics at HOST:PORT, path "+exposition.Path)
	set.StringVar(&e.push, "otlp-push", "", fmt.Sprintf("push metrics to the OpenTelemetry receiver at http://HOST:PORT every %v", exposition.PushEvery))
}

// history is how much of the past a store is to remember, in bytes: none where nobody can look back.
func (e *exports) history(size int) int {
	if !e.screen {
		return 0
	}
	return size
}

func (e *exports) any() bool { return e.listen != "" || e.push != "" }

func (e *exports) check() error {
	if e.listen != "" {
		if _, err := net.ResolveTCPAddr("tcp", e.address()); err != nil {
			return usagef("--metrics-listen %q: write HOST:PORT", e.listen)
		}
	}
	if e.push != "" {
		if err := exposition.CheckAddress(e.push); err != nil {
			return usagef("--otlp-push: %w", err)
		}
	}
	return nil
}

// address is where to listen. Without a host that is where only this machine gets.
func (e *exports) address() string {
	if host, port, err := net.SplitHostPort(e.listen); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return e.listen
}

// loopback reports whether only this machine can reach the address.
func (e *exports) loopback() bool {
	host, _, _ := net.SplitHostPort(e.address())
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// exporting tells other programs what is measured, until it is closed.
type exporting struct {
	exporter *exposition.Exporter
	server   *http.Server       // nil: nobody fetches
	pusher   *exposition.Pusher // nil: pushed to nobody
	kept     atomic.Pointer[error]
}

// open begins to tell, if that is wanted; otherwise what it returns is nil, which can be used all the same.
func (e *exports) open(tokenFile string) (*exporting, error) {
	if !e.any() {
		return nil, nil
	}
	x := &exporting{exporter: exposition.New(versionString())}
	if e.listen != "" {
		if err := x.listen(e, tokenFile); err != nil {
			return nil, err
		}
	}
	if e.push != "" {
		tell := func(err error) {
			if e.screen {
				x.kept.Store(&err)
				return
			}
			note(err)
		}
		pusher, err := x.exporter.Push(e.push, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), tell)
		if err != nil {
			return nil, errors.Join(usagef("--otlp-push: %w", err), x.close())
		}
		x.pusher = pusher
	}
	return x, nil
}

func note(err error) { fmt.Fprintf(os.Stderr, "llmtop: %v\n", err) }

// Limits of the endpoint. Whoever is slower than that is hung up on.
const (
	headerWithin = 5 * time.Second
	answerIn     = time.Minute
	maxHeader    = 16 << 10
)

// listen lets metrics be fetched.
func (x *exporting) listen(e *exports, tokenFile string) error {
	secret, err := token(tokenFile)
	if err != nil {
		return err
	}
	if secret == "" && !e.loopback() {
		return usagef("--metrics-listen %s: other machines can reach this address, so it needs --token-file", e.listen)
	}
	l, err := net.Listen("tcp", e.address())
	if err != nil {
		return usagef("--metrics-listen: %w", err)
	}
	x.server = &http.Server{
		Handler: x.exporter.Handler(secret), ReadHeaderTimeout: headerWithin, WriteTimeout: answerIn, IdleTimeout: 2 * answerIn,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = x.server.Serve(l) }() // ends when it is closed
	if !e.screen {
		fmt.Fprintf(os.Stderr, "metrics: http://%s%s\n", l.Addr(), exposition.Path)
	}
	return nil
}

// session makes a session that is told of under a name.
func (x *exporting) session(name string, opt store.Options) *session {
	if x == nil {
		return newSession(opt)
	}
	engine, also := x.exporter.Add(name, opt.Now), opt.OnRequest
	opt.OnRequest = func(r *store.Request) {
		engine.Request(r)
		if also != nil {
			also(r)
		}
	}
	s := newSession(opt)
	engine.Watch(s.store.Snapshot)
	s.sink = append(s.sink, engine)
	return s
}

// close ends it, after the last event: what is pushed then is the whole.
func (x *exporting) close() error {
	if x == nil {
		return nil
	}
	if x.pusher != nil {
		x.pusher.Close()
	}
	if err := x.kept.Load(); err != nil {
		note(*err)
	}
	if x.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for those who are just fetching
	defer cancel()
	if err := x.server.Shutdown(ctx); err != nil {
		return x.server.Close()
	}
	return nil
}

// localEngine is the name under which an engine is told of that this program runs.
const localEngine = "local"

// engine is the name under which the engine is told of: its address, less a password in it.
func (e *exports) engine() string {
	if e.of == "" {
		return localEngine
	}
	if u, err := url.Parse(e.of); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return e.of
}
