//go:build unix

package peer

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Manner is how a server of a farm answers.
type Manner uint32

// The manners.
const (
	Well      Manner = iota
	Refuses          // nothing listens at its port, which nobody else gets
	Hangs            // it takes a question and says nothing
	Trickles         // a byte now and then
	Fails            // it answers 500
	BreaksOff        // it hangs up in the middle of its metrics
)

// Farm are many servers on 127.0.0.1, in one process: they answer as a vLLM does, or in a manner that the test wants.
type Farm struct {
	Servers []*Farmed

	http   http.Server
	byPort map[int]*Farmed
	text   []sample
	began  time.Time
}

// Farmed is one of them.
type Farmed struct {
	URL string

	farm   *Farm
	port   int
	index  int
	manner atomic.Uint32
	asked  atomic.Int64
	told   atomic.Int64

	mu     sync.Mutex // guards what follows
	listen net.Listener
	held   int               // the socket that keeps the port of one that refuses
	open   map[net.Conn]bool // its connections; true: a question on it waits for its answer
	most   struct{ conns, questions int }
}

// NewFarm starts so many servers that tell the metrics of a text for the length of a test. Their counters rise as the time goes, those of each server
// at a pace of its own.
func NewFarm(tb testing.TB, text string, n int) *Farm {
	tb.Helper()
	f := &Farm{byPort: make(map[int]*Farmed), text: samples(text), began: time.Now()}
	f.http = http.Server{
		Handler: http.HandlerFunc(f.serve), ConnState: f.state, ErrorLog: log.New(io.Discard, "", 0), // clients that leave early are the test's doing
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	tb.Cleanup(f.close)
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		s := &Farmed{URL: "http://" + l.Addr().String(), farm: f, port: portOf(l.Addr()), index: i, listen: l, open: make(map[net.Conn]bool)}
		f.Servers = append(f.Servers, s)
		f.byPort[s.port] = s
	}
	for _, s := range f.Servers {
		go f.http.Serve(s.listen) // until its listener closes
	}
	return f
}

// URLs are the addresses of all servers.
func (f *Farm) URLs() (out []string) {
	for _, s := range f.Servers {
		out = append(out, s.URL)
	}
	return out
}

// Open is how many connections there are to all servers.
func (f *Farm) Open() (n int) {
	for _, s := range f.Servers {
		s.mu.Lock()
		n += len(s.open)
		s.mu.Unlock()
	}
	return n
}

func (f *Farm) close() {
	_ = f.http.Close()
	for _, s := range f.Servers {
		s.release()
	}
}

// Asked is how many questions have come.
func (s *Farmed) Asked() int { return int(s.asked.Load()) }

// Told is how often it has told its metrics.
func (s *Farmed) Told() int { return int(s.told.Load()) }

// Most is how many connections there were at a time at most, and how many questions of a client that had not given up.
func (s *Farmed) Most() (conns, questions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most.conns, s.most.questions
}

// Set has the server answer in another manner from now on.
func (s *Farmed) Set(tb testing.TB, m Manner) {
	tb.Helper()
	if was := Manner(s.manner.Swap(uint32(m))); (was == Refuses) == (m == Refuses) {
		return
	}
	if m == Refuses {
		s.hold(tb)
		return
	}
	s.release()
	var err error
	if s.listen, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: s.port}); err != nil {
		tb.Fatal(err)
	}
	go s.farm.http.Serve(s.listen) // until its listener closes
}

// hold dies: nothing listens any more and connections are closed. The port is kept.
func (s *Farmed) hold(tb testing.TB) {
	tb.Helper()
	_ = s.listen.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		tb.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	s.held = fd
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: s.port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatalf("keep port %d: %v", s.port, err)
	}
}

func (s *Farmed) release() {
	if s.held > 0 {
		_ = syscall.Close(s.held)
		s.held = 0
	}
}

func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }

// state keeps account of connections.
func (f *Farm) state(c net.Conn, state http.ConnState) {
	s := f.byPort[portOf(c.LocalAddr())]
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[c] = false
		s.most.conns = max(s.most.conns, s.living())
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
	}
}

// living are the connections that the client has not closed.
func (s *Farmed) living() (n int) {
	for c := range s.open {
		if alive(c) {
			n++
		}
	}
	return n
}

// alive reports whether the other end has not closed a connection: the kernel knows before anybody who reads from it.
func alive(c net.Conn) bool {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	living := false
	var one [1]byte
	err = raw.Control(func(fd uintptr) { // not Read, which waits for whoever reads
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		living = n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err == nil && living
}

// connKey is where a request's context has its connection.
type connKey struct{}

// begin notes a question. It returns what ends it.
func (s *Farmed) begin(r *http.Request) (end func()) {
	c := r.Context().Value(connKey{}).(net.Conn)
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 1
	for other, busy := range s.open {
		if busy && other != c && alive(other) {
			waiting++
		}
	}
	s.most.questions = max(s.most.questions, waiting)
	s.open[c] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, is := s.open[c]; is {
			s.open[c] = false
		}
	}
}
