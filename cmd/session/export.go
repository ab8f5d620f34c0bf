package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/exposition"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/loopback"
)

// ExportFlags are the flags that export measurements to other programs.
type ExportFlags struct {
	listen string   // HOST:PORT; "": off
	Allow  []string // host names, besides those of loopback, that requests to a loopback address may use
	push   string   // URL; "": off
}

func (e *ExportFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&e.listen, "metrics-listen", "", "serve Prometheus metrics at `HOST:PORT`, path "+exposition.Path)
	set.StringArrayVar(&e.Allow, loopback.Flag, nil, "also accept HTTP requests for host `NAME` on loopback addresses (repeatable)")
	set.StringVar(&e.push, "otlp-push", "", fmt.Sprintf("push metrics and spans to the OTLP receiver at `URL` every %v", exposition.PushInterval))
}

// Any reports whether anything is exported.
func (e *ExportFlags) Any() bool { return e.listen != "" || e.push != "" }

func (e *ExportFlags) check() error {
	if e.listen != "" {
		if _, err := net.ResolveTCPAddr("tcp", e.address()); err != nil {
			return exit.Usagef("--metrics-listen %q: must be HOST:PORT", e.listen)
		}
	}
	if err := loopback.CheckHosts(e.Allow); err != nil {
		return exit.Usage(err)
	}
	if e.push != "" {
		if err := exposition.CheckAddress(e.push); err != nil {
			return exit.Usagef("--otlp-push: %w", err)
		}
	}
	return nil
}

// address returns where to listen, on loopback unless a host is given.
func (e *ExportFlags) address() string {
	if host, port, err := net.SplitHostPort(e.listen); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return e.listen
}

// loopback reports whether only this machine can reach the address.
func (e *ExportFlags) loopback() bool {
	host, _, _ := net.SplitHostPort(e.address())
	return loopback.Host(host)
}

// export exports measurements until it is closed. All methods accept nil.
type export struct {
	exporter  *exposition.Exporter
	server    *http.Server       // nil: no --metrics-listen
	pusher    *exposition.Pusher // nil: no --otlp-push
	pushError atomic.Pointer[error]
}

// open starts the export. It returns nil if no export is set. shown says that a screen is open: nothing is printed.
func (e *ExportFlags) open(tokenFile string, shown bool) (*export, error) {
	if !e.Any() {
		return nil, nil
	}
	x := &export{exporter: exposition.New(version.String())}
	if e.listen != "" {
		if err := x.listen(e, tokenFile, shown); err != nil {
			return nil, err
		}
	}
	if e.push != "" {
		report := func(err error) {
			if shown {
				x.pushError.Store(&err)
				return
			}
			console.PrintError(err)
		}
		pusher, err := x.exporter.Push(e.push, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), report)
		if err != nil {
			return nil, errors.Join(exit.Usagef("--otlp-push: %w", err), x.close())
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
func (x *export) listen(e *ExportFlags, tokenFile string, shown bool) error {
	secret, err := files.Token(tokenFile)
	if err != nil {
		return err
	}
	if secret == "" && !e.loopback() {
		return exit.Usagef("--metrics-listen %s: other machines can reach this address: add --token-file FILE", e.listen)
	}
	l, err := net.Listen("tcp", e.address())
	if err != nil {
		return exit.Usagef("--metrics-listen: %w", err)
	}
	x.server = &http.Server{
		Handler: loopback.NewGuard(l.Addr(), e.Allow).Handler(x.exporter.Handler(secret)), DisableGeneralOptionsHandler: true, // the general handler would accept any host
		ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: 2 * writeTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = x.server.Serve(l) }() // ends when the server is closed
	if !shown {
		fmt.Fprintf(console.Err, "metrics: http://%s%s\n", l.Addr(), exposition.Path)
	}
	return nil
}

// session creates a session that is exported under a name.
func (x *export) session(name string, opt store.Options) *Session {
	if x == nil {
		return New(opt)
	}
	engine := x.exporter.Add(name, opt.Now)
	opt.OnRequest, opt.OnGaps = engine.Request, engine.Gaps
	s := New(opt)
	engine.Watch(s.Store.Snapshot)
	s.AlsoTo(engine)
	return s
}

// close ends the export after the last event, with a final push.
func (x *export) close() error {
	if x == nil {
		return nil
	}
	if x.pusher != nil {
		x.pusher.Close()
	}
	if err := x.pushError.Load(); err != nil {
		console.PrintError(*err)
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

// ExportName returns the exported name of the engine at an address. "" is the engine that llmtop runs.
func ExportName(address string) string {
	switch {
	case address == "":
		return localEngine
	case strings.Contains(address, "://"):
		return clean.URL(address)
	}
	return address
}
