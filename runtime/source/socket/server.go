// Package socket carries events between processes: a Server lets others watch the engine of this process, a Client
// watches the engine of another. docs/event-protocol.md describes the protocol.
package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

// maxReaders limits the number of concurrent readers.
const maxReaders = 32

// Options configure a Server. Zero values are sensible defaults.
type Options struct {
	Clock      engine.Clock     // clock of the events' stamps; zero: one that starts now
	Engine     event.EngineInfo // initial description of the engine, for example its name
	Token      string           // token that readers must send; "": none: only this user, or over TCP this machine, can connect
	Controller Controller       // acts on messages from readers; nil: none are accepted. Over TCP it requires a token
	Text       bool             // send prompts and completions to every reader; false: only to the reader that requested the text with its own request
	Buffer     int              // events that can wait for a slow reader; 0: DefaultBuffer

	Context context.Context // ends the wait for a folder that another engine has locked; nil: never
}

// Server lets readers in other processes watch an engine. It is an event.Sink; Emit costs well under a microsecond,
// regardless of the number and speed of readers.
type Server struct {
	opt      Options
	address  address
	listener net.Listener
	run      string // identifies this run of the engine
	wait     sync.WaitGroup
	closing  chan struct{}

	mu      sync.Mutex // guards the fields below
	ring    ring
	state   state
	lost    event.Drops // dropped by the sources
	readers map[*reader]struct{}
	idle    int // readers waiting to be woken
	closed  bool
}

// Listen opens the socket of an engine at "unix:PATH" or "tcp:HOST:PORT", port 0 for any free one. Errors: ErrInUse if
// a live engine listens at the path, ErrToken if other machines could reach the address without a token.
func Listen(at string, opt Options) (*Server, error) {
	a, err := parse(at)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if len(opt.Token) > wire.MaxToken/2 {
		return nil, fmt.Errorf("listen at %v: %w: longer than %d bytes", a, ErrToken, wire.MaxToken/2)
	}
	if opt.Clock == (engine.Clock{}) {
		opt.Clock = engine.NewClock()
	}
	if opt.Buffer <= 0 {
		opt.Buffer = DefaultBuffer
	}
	if opt.Engine.PID == 0 {
		opt.Engine.PID = os.Getpid()
	}
	if opt.Context == nil {
		opt.Context = context.Background()
	}
	l, err := open(opt.Context, a, opt.Token)
	if err != nil {
		return nil, err
	}
	if a.network == "tcp" {
		a.path = l.Addr().String()
	}
	s := &Server{
		opt: opt, address: a, listener: l, closing: make(chan struct{}), readers: make(map[*reader]struct{}),
		run:  strconv.FormatInt(opt.Clock.Epoch(), 16) + "-" + strconv.FormatInt(int64(os.Getpid()), 16),
		ring: ring{events: make([]event.Event, opt.Buffer)}, state: state{State: catchup.State{Limits: stateLimits}},
	}
	s.state.apply(&event.Event{Kind: event.KindEngine, Layer: -1, Data: &opt.Engine}, 0)
	s.wait.Go(s.accept)
	return s, nil
}

// Address returns the address for readers, for example "tcp:127.0.0.1:41234".
func (s *Server) Address() string { return s.address.String() }

// Emit implements event.Sink.
func (s *Server) Emit(e event.Event) {
	if e.Kind >= event.NumKinds {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case event.KindDrops:
		if p, ok := e.Data.(*event.Drops); ok && p != nil {
			s.lost = *p
		}
		return
	case event.KindEngine:
		if p, ok := e.Data.(*event.EngineInfo); !ok || p == nil {
			return
		}
	}
	s.state.apply(&e, s.ring.head)
	if len(s.readers) == 0 {
		s.ring.head++
		s.ring.pushed[e.Kind]++
		s.ring.tail, s.ring.left[e.Kind] = s.ring.head, s.ring.pushed[e.Kind]
		return
	}
	s.ring.push(&e)
	if s.idle > 0 {
		s.wake()
	}
	if e.Kind == event.KindRequest && e.State.Final() {
		for r := range s.readers {
			r.rush()
		}
	}
}

// wake wakes the waiting readers. The caller holds mu.
func (s *Server) wake() {
	for r := range s.readers {
		if r.idle {
			r.idle = false
			r.woken <- struct{}{} // never blocks: no one else sends to an idle reader
		}
	}
	s.idle = 0
}

// wakeOne wakes a reader if it waits.
func (s *Server) wakeOne(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.idle {
		r.idle = false
		s.idle--
		r.woken <- struct{}{}
	}
}

// Readers returns the number of readers.
func (s *Server) Readers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.readers)
}

// closes reports whether the server is closing.
func (s *Server) closes() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// accept accepts connections.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			select {
			case <-s.closing:
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		s.wait.Go(func() { s.serve(conn) })
	}
}

// enter adds a reader and returns its first lines: the introduction and the state. The reader gets all events emitted
// from then on.
func (s *Server) enter(r *reader) (hello []byte, past []event.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, errors.New("the engine closed the socket")
	case len(s.readers) >= maxReaders:
		return nil, nil, fmt.Errorf("too many readers: limit %d", maxReaders)
	}
	if len(s.readers) == 0 {
		s.ring.clear()
	}
	s.readers[r] = struct{}{}
	r.cursor = s.ring.begin()
	r.lost[event.KindRequest] = s.state.Untracked()
	return s.hello(r), s.state.events(), nil
}

// hello returns the current introduction of the engine. The caller holds mu.
func (s *Server) hello(r *reader) []byte {
	engine := *s.state.Newest(0, event.KindEngine).Data.(*event.EngineInfo)
	at := s.opt.Clock.Now()
	engine.Epoch = time.Now().UnixNano() - int64(at)
	engine.Caps = r.offers(engine.Caps)
	var model *event.Model
	var loadTime int64
	if loaded := s.state.Newest(0, event.KindModel); loaded != nil {
		model, _ = loaded.Data.(*event.Model)
		loadTime = loaded.Dur
	}
	return wire.AppendHello(nil, at, s.run, &engine, model, loadTime)
}

// leave removes a reader.
func (s *Server) leave(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers, r)
	if r.idle {
		s.idle--
	}
	if len(s.readers) == 0 {
		s.ring.clear()
	}
}

// Close sends the remaining events to all readers, closes their connections and waits for them, but not for readers
// that do not read. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wait.Wait()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	err := s.listener.Close()
	s.wait.Wait()
	if err != nil {
		return fmt.Errorf("close %v: %w", s.address, err)
	}
	return nil
}
