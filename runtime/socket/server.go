// Package socket carries events between processes: a Server lets others watch the engine of this one, a Client watches that of another.
// docs/event-protocol.md is what they speak.
package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime"
)

// maxReaders is how many readers there may be at a time.
const maxReaders = 32

// Options configure a Server. The zero value of each is a sensible default.
type Options struct {
	Clock      runtime.Clock // that events are stamped with; zero: one that starts now
	Engine     event.Engine  // what is known of the engine before it speaks, for example its name
	Token      string        // readers must know it; "": only this user, or over TCP this machine, can connect
	Controller Controller    // takes messages from readers; nil: there are none. Over TCP there are none without a token
	Buffer     int           // events that wait for a slow reader; 0: DefaultBuffer
}

// Server lets readers in other processes watch an engine. It is an event.Sink; Emit costs well under a microsecond, however many
// readers there are and however slow they are.
type Server struct {
	opt      Options
	address  address
	listener net.Listener
	run      string // names this run of the engine
	wait     sync.WaitGroup
	closing  chan struct{}

	mu      sync.Mutex // guards what follows
	ring    ring
	state   state
	lost    event.Lost // by the sources
	readers map[*reader]struct{}
	idle    int // readers that wait to be woken
	closed  bool
}

// Listen opens the socket of an engine at "unix:PATH" or "tcp:HOST:PORT", port 0 for any that is free. Errors: ErrInUse if a live engine
// listens at the path, ErrToken if other machines could reach the address without one.
func Listen(at string, opt Options) (*Server, error) {
	a, err := parse(at)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if len(opt.Token) > wire.MaxToken/2 {
		return nil, fmt.Errorf("listen at %v: %w: longer than %d bytes", a, ErrToken, wire.MaxToken/2)
	}
	if opt.Clock == (runtime.Clock{}) {
		opt.Clock = runtime.NewClock()
	}
	if opt.Buffer <= 0 {
		opt.Buffer = DefaultBuffer
	}
	if opt.Engine.PID == 0 {
		opt.Engine.PID = os.Getpid()
	}
	l, err := open(a, opt.Token)
	if err != nil {
		return nil, err
	}
	if a.network == "tcp" {
		a.path = l.Addr().String()
	}
	s := &Server{
		opt: opt, address: a, listener: l, closing: make(chan struct{}), readers: make(map[*reader]struct{}),
		run:  strconv.FormatInt(opt.Clock.Epoch(), 16) + "-" + strconv.FormatInt(int64(os.Getpid()), 16),
		ring: ring{events: make([]event.Event, opt.Buffer)},
	}
	s.state.latest[event.KindEngine] = event.Event{Kind: event.KindEngine, Layer: -1, Data: &opt.Engine}
	s.wait.Go(s.accept)
	return s, nil
}

// Address is where readers find the server, for example "tcp:127.0.0.1:41234".
func (s *Server) Address() string { return s.address.String() }

// Emit implements event.Sink.
func (s *Server) Emit(e event.Event) {
	if e.Kind >= event.NumKinds {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case event.KindLost:
		if p, ok := e.Data.(*event.Lost); ok && p != nil {
			s.lost = *p
		}
		return
	case event.KindEngine:
		if p, ok := e.Data.(*event.Engine); !ok || p == nil {
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

// wake wakes the readers that wait. The caller holds mu.
func (s *Server) wake() {
	for r := range s.readers {
		if r.idle {
			r.idle = false
			r.woken <- struct{}{} // has room: nobody else sends to a reader that is idle
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

// Readers is how many readers there are.
func (s *Server) Readers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.readers)
}

// closes reports whether the server closes.
func (s *Server) closes() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// accept lets readers in.
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

// enter admits a reader, and returns what it must be told first. The reader gets all that is emitted from then on.
func (s *Server) enter(r *reader) (hello []byte, past []event.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, nil, errors.New("the engine has closed the socket")
	case len(s.readers) >= maxReaders:
		return nil, nil, fmt.Errorf("there are %d readers already", maxReaders)
	}
	if len(s.readers) == 0 {
		s.ring.clear()
	}
	s.readers[r] = struct{}{}
	r.cursor = s.ring.begin()
	return s.hello(r), s.state.events(), nil
}

// hello introduces the engine as it is now. The caller holds mu.
func (s *Server) hello(r *reader) []byte {
	engine := *s.state.latest[event.KindEngine].Data.(*event.Engine)
	at := s.opt.Clock.Now()
	engine.Epoch = time.Now().UnixNano() - int64(at)
	engine.Caps = r.offers(engine.Caps)
	loaded := &s.state.latest[event.KindModel]
	model, _ := loaded.Data.(*event.Model)
	return wire.AppendHello(nil, at, s.run, &engine, model, loaded.Dur)
}

// leave lets a reader go.
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

// Close tells the readers that the engine closes the socket, once they have been told all that was emitted, and waits until they are gone,
// but not for those that do not read. It may be called more than once.
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
