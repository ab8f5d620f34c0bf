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
	"github.com/llmtop/llmtop/runtime/loopback"
)

// exportFlags are the flags that export measurements to other programs.
type exportFlags struct {
	listen        string   // HOST:PORT; "": off
	allow         []string // host names, besides those of loopback, that requests to a loopback address may use
	push          string   // URL; "": off
	screen        bool     // a screen is open: print nothing
	engineAddress string   // "": llmtop runs the engine
}

func (e *exportFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&e.listen, "metrics-listen", "", "serve Prometheus metrics at `HOST:PORT`, path "+exposition.Path)
	set.StringArrayVar(&e.allow, loopback.Flag, nil, "also accept HTTP requests for host `NAME` on loopback addresses (repeatable)")
	set.StringVar(&e.push, "otlp-push", "", fmt.Sprintf("push metrics to the OpenTelemetry receiver at `URL` every %v", exposition.PushInterval))
}

// historyBytes returns size if there is a screen to go back in time on, otherwise 0.
func (e *exportFlags) historyBytes(size int) int {
	if !e.screen {
		return 0
	}
	return size
}

func (e *exportFlags) any() bool { return e.listen != "" || e.push != "" }

func (e *exportFlags) check() error {
	if e.listen != "" {
		if _, err := net.ResolveTCPAddr("tcp", e.address()); err != nil {
			return usagef("--metrics-listen %q: must be HOST:PORT", e.listen)
		}
	}
	if err := loopback.CheckHosts(e.allow); err != nil {
		return usageError{err}
	}
	if e.push != "" {
		if err := exposition.CheckAddress(e.push); err != nil {
			return usagef("--otlp-push: %w", err)
		}
	}
	return nil
}

// address returns where to listen, on loopback unless a host is given.
func (e *exportFlags) address() string {
	if host, port, err := net.SplitHostPort(e.listen); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return e.listen
}

// loopback reports whether only this machine can reach the address.
func (e *exportFlags) loopback() bool {
	host, _, _ := net.SplitHostPort(e.address())
	return loopback.Host(host)
}

// metricsExport exports measurements until it is closed. All methods accept nil.
type metricsExport struct {
	exporter  *exposition.Exporter
	server    *http.Server       // nil: no --metrics-listen
	pusher    *exposition.Pusher // nil: no --otlp-push
	pushError atomic.Pointer[error]
}

// open starts the export. It returns nil if no export is set.
func (e *exportFlags) open(tokenFile string) (*metricsExport, error) {
	if !e.any() {
		return nil, nil
	}
	x := &metricsExport{exporter: exposition.New(versionString())}
	if e.listen != "" {
		if err := x.listen(e, tokenFile); err != nil {
			return nil, err
		}
	}
	if e.push != "" {
		report := func(err error) {
			if e.screen {
				x.pushError.Store(&err)
				return
			}
			printError(err)
		}
		pusher, err := x.exporter.Push(e.push, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), report)
		if err != nil {
			return nil, errors.Join(usagef("--otlp-push: %w", err), x.close())
		}
		x.pusher = pusher
	}
	return x, nil
}

// Timeouts and limits of the metrics endpoint.
const (
	headerTimeout = 5 * time.Second
	writeTimeout  = time.Minute
	maxHeader     = 16 << 10
)

// listen starts the metrics endpoint.
func (x *metricsExport) listen(e *exportFlags, tokenFile string) error {
	secret, err := token(tokenFile)
	if err != nil {
		return err
	}
	if secret == "" && !e.loopback() {
		return usagef("--metrics-listen %s: other machines can reach this address: add --token-file FILE", e.listen)
	}
	l, err := net.Listen("tcp", e.address())
	if err != nil {
		return usagef("--metrics-listen: %w", err)
	}
	x.server = &http.Server{
		Handler: loopback.NewGuard(l.Addr(), e.allow).Handler(x.exporter.Handler(secret)), DisableGeneralOptionsHandler: true, // the general handler would accept any host
		ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: 2 * writeTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = x.server.Serve(l) }() // ends when the server is closed
	if !e.screen {
		fmt.Fprintf(consoleErr, "metrics: http://%s%s\n", l.Addr(), exposition.Path)
	}
	return nil
}

// session creates a session that is exported under a name.
func (x *metricsExport) session(name string, opt store.Options) *session {
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

// close ends the export after the last event, with a final push.
func (x *metricsExport) close() error {
	if x == nil {
		return nil
	}
	if x.pusher != nil {
		x.pusher.Close()
	}
	if err := x.pushError.Load(); err != nil {
		printError(*err)
	}
	if x.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for requests in progress
	defer cancel()
	if err := x.server.Shutdown(ctx); err != nil {
		return x.server.Close()
	}
	return nil
}

// localEngine is the exported name of an engine that llmtop runs.
const localEngine = "local"

// engine returns the exported name of the engine: its address, without a password.
func (e *exportFlags) engine() string {
	if e.engineAddress == "" {
		return localEngine
	}
	if u, err := url.Parse(e.engineAddress); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return e.engineAddress
}
