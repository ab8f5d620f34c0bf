package watch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/host"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/tap"
)

// tapped is a tap that is watched in place of addresses.
type tapped struct {
	*tap.Tap
	port  uint16 // tapped live on this machine; 0: the packets come from a pipe, and nothing shows from which machine
	clock engine.Clock

	at       netip.AddrPort // of this machine, where a server is polled
	listened bool           // something listened there at the start
	only     bool           // at no other address of this machine
}

// BindTap adds the flags of the command that watches a tap, and reads the config file.
func (o *Options) BindTap(c *cobra.Command) {
	o.bind(c, "report without a screen, of a file at once, otherwise when interrupted")
	o.NoText = "not kept by the tap"
	_ = c.Flags().MarkHidden("text") // always refused: the tap keeps no text
	o.use(c, func() error {
		if o.Out.Text {
			return exit.Usagef("--text: the tap keeps no text")
		}
		return o.checkCommon()
	})
}

// Tap is Run for the server behind a tap. port is what is tapped live on this machine, 0 for a pipe.
func (o *Options) Tap(ctx context.Context, t *tap.Tap, port uint16, clock engine.Clock) error {
	o.tap, o.every, o.Addresses = &tapped{Tap: t, port: port, clock: clock}, scrape.DefaultInterval, []string{"tap:-"}
	if port != 0 {
		o.tap.look()
		o.Addresses[0] = "http://" + o.tap.at.String()
	}
	return o.Run(ctx)
}

// verb is the name of the command.
func (o *Options) verb() string {
	if o.tap != nil {
		return "tap"
	}
	return "attach"
}

// addTap starts to watch what the tap sees. A server on this machine is polled as well, and its process is sampled.
func addTap(ctx context.Context, w *watcher, at string) error {
	t := w.opt.tap
	to := joined{here: t.here}
	run := func(ctx context.Context, sink event.Sink) error {
		err := t.Run(ctx, to.tapped(sink))
		if !w.opt.shown && ctx.Err() == nil { // a pipe that has ended
			w.stop()
		}
		return err
	}
	if t.port == 0 {
		to.clock = &w.clock
		_, err := w.start(ctx, watched{at: at, doing: "read packets", run: run, hostUnknown: true})
		return err
	}
	if !t.listened {
		w.opt.note(fmt.Sprintf("nothing listens at port %d of this machine yet: waiting for requests to any machine", t.port))
	}
	poller, err := scrape.New(scrape.Options{
		Address: at, Key: w.key, Interval: w.opt.every, Clock: w.clock, Runners: ollamaRunners(at), NeverSleeps: neverSleeps(at),
	})
	if err != nil {
		return err
	}
	_, err = w.start(ctx, watched{at: at, doing: "read packets", run: run, hostUnknown: !t.here()}, func(s *session.Session) {
		s.Add("poll "+at, func(ctx context.Context, sink event.Sink) error { return poller.Run(ctx, to.polled(sink)) })
		owner := w.machine.At(at) // nil: it is not known by its port alone
		w.machine.Watch(s, w.clock, func() (pid int, here bool) {
			if owner != nil {
				pid, _ = owner()
			}
			return pid, t.here()
		}, s)
	})
	return err
}

// here reports whether the polled server runs on this machine and is the tapped one: it has answered at an address at which
// that listens, or it has not answered yet and something listened at the port at the start.
func (t *tapped) here() bool {
	servers := t.Servers()
	return len(servers) == 0 && t.listened || slices.ContainsFunc(servers, func(by netip.AddrPort) bool {
		return t.Local(by) && (!t.only || by == t.at)
	})
}

// dialTimeout is how long a connection to a port of this machine may take.
const dialTimeout = time.Second

// look finds out whether something listens at the port, and at which address: at 127.0.0.1, or else at the first that does.
func (t *tapped) look() {
	loopback := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), t.port)
	all, _ := host.Listeners("/proc/net")
	every := func(at netip.AddrPort) bool { return at.Addr().IsUnspecified() }
	list := []netip.AddrPort{loopback}
	for _, l := range all {
		if at := l.At; at.Port() == t.port {
			if every(at) && at.Addr().Is6() {
				at = netip.AddrPortFrom(netip.IPv6Loopback(), t.port)
			}
			list = append(list, at)
		}
	}
	t.at, t.only = loopback, len(list) > 1 && !slices.ContainsFunc(all, func(l host.Listener) bool { return l.At.Port() == t.port && every(l.At) })
	for _, at := range list {
		if conn, err := net.DialTimeout("tcp", at.String(), dialTimeout); err == nil {
			_ = conn.Close()
			t.at, t.listened = at, true
			return
		}
	}
}

// joined makes the events of a tap and of the poller of the same server those of one engine: its requests are those that
// the tap measures, and the poller adds what only the server knows.
type joined struct {
	here  func() bool   // the polled server is the tapped one
	clock *engine.Clock // nil: packets come when they are captured; otherwise they may come faster

	mu     sync.Mutex // guards what follows; held while an introduction is emitted
	seen   event.EngineInfo
	server event.EngineInfo
	model  bool // the server has reported its model
}

// tapped returns the sink for the events of the tap.
func (j *joined) tapped(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.clock != nil {
			j.clock.Reach(e.At)
		}
		switch p := e.Data.(type) {
		case *event.EngineInfo:
			j.seen = *p
			j.introduce(e, sink)
			return
		case *event.Model:
			if j.model { // it says more
				return
			}
		}
		sink.Emit(e)
	})
}

// polled returns the sink for the events of the poller.
func (j *joined) polled(sink event.Sink) event.Sink {
	return event.SinkFunc(func(e event.Event) {
		if !j.here() {
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		switch p := e.Data.(type) {
		case *event.EngineInfo:
			if p.Remote.Link == event.LinkConnected || j.server.Remote.Link != event.LinkNone { // else it was never reached: the tap needs no answers
				j.server = *p
				j.introduce(e, sink)
			}
			return
		case *event.Model:
			j.model = true
		case *event.Aggregates:
			e.Data = besides(p)
		}
		sink.Emit(e)
	})
}

// introduce emits the state of the engine. The caller holds mu.
func (j *joined) introduce(e event.Event, sink event.Sink) {
	out, server := j.seen, &j.server
	if out.Name == "" { // the tap has not begun
		return
	}
	if out.Remote.Link == event.LinkNone {
		out.Remote.Link = event.LinkConnected
	}
	if r := &server.Remote; r.Link != event.LinkNone {
		out.Provider, out.Version, out.Device, out.Slots = server.Name, server.Version, server.Device, server.Slots
		out.State, out.Reason, out.Caps = server.State, server.Reason, out.Caps|server.Caps
		out.Remote.Address, out.Remote.Link, out.Remote.Reason, out.Remote.Since, out.Remote.Restarts = r.Address, r.Link, r.Reason, r.Since, r.Restarts
	}
	e.Data = &out
	sink.Emit(e)
}

// besides returns a report of aggregate metrics without what the tap measures itself, request by request.
func besides(p *event.Aggregates) *event.Aggregates {
	out := *p
	for _, r := range []*event.Reading{
		&out.Decode, &out.Prefill, &out.Finished, &out.Failed, &out.Cancelled, &out.Prompt, &out.Cached, &out.Generated,
	} {
		*r = event.Absent(event.NotReported)
	}
	out.Slots, out.Earlier, out.AtLeast = nil, nil, false
	out.Histograms = slices.DeleteFunc(slices.Clone(p.Histograms), func(h event.Histogram) bool {
		return slices.Contains([]string{event.HistogramTTFT, event.HistogramITL, event.HistogramTPOT, event.HistogramE2EL}, h.Name)
	})
	return &out
}
