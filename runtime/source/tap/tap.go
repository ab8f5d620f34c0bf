// Package tap measures the requests of any HTTP server from the packets that its clients and it exchange, live or from a
// capture file. It sends nothing and changes nothing. It reads the headers that say where messages end, and neither keeps nor
// emits prompts, answers or keys.
//
// One goroutine reads the packets and does all that follows, so that the same packets give the same events in the same order.
package tap

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/prompts"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

// Options configure a tap.
type Options struct {
	Port        uint16    // the server's TCP port; 0: any, of a file only
	From        io.Reader // capture file or pipe; nil: the packets of this machine
	Follow      bool      // From is a pipe whose packets come as they are captured, maybe on a machine with another clock
	GroupHeader string    // request header with the request's group; "": the client's address is the group
	ExpertsUsed int       // experts picked per token (SGLang's answers do not report it); 0: unknown
	Clock       engine.Clock
}

// Tap is an engine.Source that emits the requests in captured packets. The times of a file are relative to its first packet.
type Tap struct {
	opt       Options
	source    *capture.Source
	assembler *capture.Assembler
	server    *answers.Server
	sink      event.Sink // set by Run
	prompts   *prompts.History

	// The goroutine of Run uses these.
	zero    time.Time // wall clock at time 0
	sets    int       // how often the clock that stamps packets was set
	started bool      // zero is set and the first state emitted
	now     event.Time
	last    event.RequestID
	held    int // bytes of heads and bodies of all connections
	packed  int // compressed answers in progress
	counted event.Time
	place   string         // where packets are captured, for the engine's name; "": unknown
	losses  capture.Losses // as emitted last

	connections int
	passed      int // requests of any kind
	live        int // requests that are measured and have not ended

	mu      sync.Mutex // guards servers; only the goroutine of Run changes them
	servers []netip.AddrPort
}

// maxServers limits the servers that are listed.
const maxServers = 64

// New opens the packets: it reads the header of a file, or opens a socket, for which it needs the right to. Bytes of packets
// are parsed only once Run is called.
func New(opt Options) (*Tap, error) {
	t := &Tap{opt: opt, prompts: prompts.NewHistory()}
	t.server = answers.NewServer(func() event.Time { return t.now }, opt.ExpertsUsed)
	var err error
	if opt.From != nil {
		t.source, err = capture.OpenFile(opt.From)
	} else {
		t.source, err = capture.OpenLive(opt.Port)
	}
	if err != nil {
		return nil, err
	}
	t.assembler = capture.NewAssembler(capture.Options{Port: opt.Port, Open: t.open, Wound: t.wound})
	return t, nil
}

// Close closes the packets of a tap that does not run.
func (t *Tap) Close() error { return t.source.Close() }

// Local reports whether a server is on this machine. Of packets from a file or a pipe only loopback is known.
func (t *Tap) Local(server netip.AddrPort) bool { return t.source.Local(server.Addr()) }

// Warnings returns sentences about what could not be measured well, with the numbers of requests or connections that each
// applies to.
func (t *Tap) Warnings() []string { return t.server.Warnings() }

// Servers returns the servers that answered over HTTP, in the order of their first answers.
func (t *Tap) Servers() []netip.AddrPort {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.servers)
}

// Counts returns the numbers of connections, of requests of any kind, and of those that were measured. Call it when Run has
// returned.
func (t *Tap) Counts() (connections, passed, measured int) {
	return t.connections, t.passed, int(t.last)
}

// Run implements engine.Source. It returns nil at the end of a file.
func (t *Tap) Run(ctx context.Context, sink event.Sink) error {
	defer t.source.Close() //nolint:errcheck // it was only read
	t.sink = sink
	if t.opt.From == nil {
		t.start(time.Now())
	}
	err := t.assembler.Run(ctx, t.source)
	t.start(t.assembler.First())
	if t.follows() {
		t.now = max(t.now, t.opt.Clock.Now())
	}
	t.countLosses()
	t.server.Stop()
	if err != nil {
		return fmt.Errorf("read packets: %w", err)
	}
	return nil
}

// How far the clock that stamps packets may be ahead of llmtop's own before that is taken: of live packets the same clock
// stamps both, until it is set.
const (
	maxLead     = 5 * time.Second // of a pipe, maybe of another machine
	maxLeadLive = 50 * time.Millisecond
)

// start sets the time 0, unless it is set, and emits the first state. first is the time of the first packet.
func (t *Tap) start(first time.Time) {
	if t.started {
		return
	}
	t.started, t.zero = true, first
	engine := event.EngineInfo{
		Name: "tap", Provider: "unknown", Caps: event.CapTokens, State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected},
	}
	if t.follows() {
		t.zero, t.now = time.Unix(0, t.opt.Clock.Epoch()), t.opt.Clock.Now()
		if off := first.Sub(t.zero) - time.Duration(t.now); off.Abs() > maxLead && !first.IsZero() {
			t.zero = t.zero.Add(off)
		}
		engine.Epoch = t.opt.Clock.Epoch()
	} else if ns := first.UnixNano(); !first.IsZero() && event.Time(ns).Plausible() {
		engine.Epoch = ns
	}
	if t.opt.Port != 0 {
		engine.Name = fmt.Sprintf("tap %d", t.opt.Port)
	}
	if t.opt.From == nil {
		engine.Remote.Address = fmt.Sprintf("http://127.0.0.1:%d", t.opt.Port)
	}
	t.server.Start(t.sink, engine)
	if engine.Epoch == 0 && !first.IsZero() {
		t.sink.Emit(event.Event{Kind: event.KindLog, At: t.now, Layer: -1, Text: fmt.Sprintf("the first packet is stamped with the year %d: times of day are not known", first.Year())})
	}
}

// advance sets the time to that of a packet.
func (t *Tap) advance(at time.Time) {
	now := event.Time(at.Sub(t.zero))
	most := event.Time(maxLead)
	if t.opt.From == nil {
		most = event.Time(maxLeadLive)
	}
	if t.follows() && now > t.opt.Clock.Now()+most {
		t.wound(at) // set forward
		now = event.Time(at.Sub(t.zero))
	}
	t.now = max(now, 0)
	if t.now-t.counted >= event.Time(time.Second) {
		t.countLosses()
	}
}

// follows reports whether packets come while they are captured, and not from a file.
func (t *Tap) follows() bool { return t.opt.From == nil || t.opt.Follow }

// wound says that the clock that stamps packets was set before a packet. Times before and after cannot be compared.
func (t *Tap) wound(at time.Time) {
	t.sets++
	if t.follows() {
		t.zero = at.Add(-time.Duration(max(t.opt.Clock.Now(), t.now)))
	}
}

// countLosses emits what could not be captured, if that has changed.
func (t *Tap) countLosses() {
	t.counted = t.now
	l := t.assembler.Losses()
	if l == t.losses {
		return
	}
	before := t.losses
	t.losses = l
	var list []event.Counter
	for _, c := range [...]struct {
		name string
		n    int
	}{ // ascending by name
		{"capture_cut", l.Cut},
		{"clock_set", l.Clock},
		{"connections_given_up", l.Connections},
		{"ip_fragments", l.Fragments},
		{"packets_dropped", l.Dropped},
		{"packets_malformed", l.Malformed},
		{"packets_of_unknown_link", l.Links},
		{"packets_truncated", l.Truncated},
		{"stream_bytes_missing", l.Bytes},
		{"stream_gaps", l.Gaps},
	} {
		if c.n > 0 {
			list = append(list, event.Counter{Name: c.name, Value: float64(c.n)})
		}
	}
	t.sink.Emit(event.Event{Kind: event.KindCounters, At: t.now, Layer: -1, Data: &event.Counters{Values: list}})
	missed := func(l *capture.Losses) int64 { return int64(l.Dropped + l.Truncated + l.Gaps + l.Connections) }
	malformed := func(l *capture.Losses) uint64 { return uint64(l.Malformed + l.Links + l.Fragments) }
	t.server.Update(func(e *event.EngineInfo) {
		e.Remote.Missed += missed(&l) - missed(&before)
		e.Remote.Malformed += malformed(&l) - malformed(&before)
	})
}

// open returns the listener of a connection.
func (t *Tap) open(f *capture.Flow) capture.Listener {
	t.start(t.assembler.First())
	t.connections++
	t.locate(f)
	c := &conn{t: t, flow: f}
	c.out.server = true
	if !f.Whole {
		c.in.place, c.out.place, c.out.chunked = nowhere, nowhere, true
	}
	return c
}

// locate says in the engine's name at which end packets are captured: at a client, times include the network. It says
// nothing if they are captured at both.
func (t *Tap) locate(f *capture.Flow) {
	const server, client, both = " at the server", " at a client", " "
	place := server
	switch {
	case f.AtServer == f.AtClient:
		return
	case t.place != "" && (t.place == server) != f.AtServer:
		place = both
	case f.AtClient:
		place = client
	}
	if t.place == place || t.place == both {
		return
	}
	t.server.Update(func(e *event.EngineInfo) { e.Name = strings.TrimRight(strings.TrimSuffix(e.Name, t.place)+place, " ") })
	t.place = place
}

// answered notes a server that answers.
func (t *Tap) answered(by netip.AddrPort) {
	if len(t.servers) == maxServers || slices.Contains(t.servers, by) {
		return
	}
	if len(t.servers) == 0 && t.opt.From != nil {
		t.server.Update(func(e *event.EngineInfo) { e.Remote.Address = "http://" + by.String() })
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.servers = append(t.servers, by)
}
