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

// bindExport adds the flags that export measurements to other programs.
func (o *Outputs) bindExport(set *pflag.FlagSet) {
	set.StringVar(&o.listen, "metrics-listen", "", "serve Prometheus metrics at `HOST:PORT`, path "+exposition.Path)
	set.StringArrayVar(&o.Allow, loopback.Flag, nil, "also accept HTTP requests for host `NAME` on loopback addresses (repeatable)")
	set.StringVar(&o.push, "otlp-push", "", fmt.Sprintf("push metrics and spans to the OTLP receiver at `URL` every %v", exposition.PushInterval))
}

// Exports reports whether anything is exported.
func (o *Outputs) Exports() bool { return o.listen != "" || o.push != "" }

// Check refuses values that cannot be used.
func (o *Outputs) Check() error {
	if o.listen != "" {
		if _, err := net.ResolveTCPAddr("tcp", o.address()); err != nil {
			return exit.Usagef("--metrics-listen %q: must be HOST:PORT", o.listen)
		}
	}
	if err := loopback.CheckHosts(o.Allow); err != nil {
		return exit.Usage(err)
	}
	if o.push != "" {
		if err := exposition.CheckAddress(o.push); err != nil {
			return exit.Usagef("--otlp-push: %w", err)
		}
	}
	return nil
}

// address returns where to listen, on loopback unless a host is given.
func (o *Outputs) address() string {
	if host, port, err := net.SplitHostPort(o.listen); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return o.listen
}

// loopback reports whether only this machine can reach the address.
func (o *Outputs) loopback() bool {
	host, _, _ := net.SplitHostPort(o.address())
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
func (o *Outputs) openExport(shown bool) (*export, error) {
	if !o.Exports() {
		return nil, nil
	}
	x := &export{exporter: exposition.New(version.String())}
	if o.listen != "" {
		if err := x.listen(o, shown); err != nil {
			return nil, err
		}
	}
	if o.push != "" {
		report := func(err error) {
			if shown {
				x.pushError.Store(&err)
				return
			}
			console.PrintError(err)
		}
		pusher, err := x.exporter.Push(o.push, os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), report)
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
func (x *export) listen(o *Outputs, shown bool) error {
	secret, err := files.Token(o.TokenFile)
	if err != nil {
		return err
	}
	if secret == "" && !o.loopback() {
		return exit.Usagef("--metrics-listen %s: other machines can reach this address: add --token-file FILE", o.listen)
	}
	l, err := net.Listen("tcp", o.address())
	if err != nil {
		return exit.Usagef("--metrics-listen: %w", err)
	}
	x.server = &http.Server{
		Handler: loopback.NewGuard(l.Addr(), o.Allow).Handler(x.exporter.Handler(secret)), DisableGeneralOptionsHandler: true, // the general handler would accept any host
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
