//go:build unix

package program_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Manner is the way a server of a farm answers.
type Manner uint32

const (
	Well      Manner = iota
	Refuses          // nothing listens at its port, which stays reserved
	Hangs            // accepts a request and sends nothing
	Trickles         // sends a byte now and then
	Fails            // answers 500
	BreaksOff        // disconnects in the middle of its metrics
)

// Farm is a set of servers on 127.0.0.1 in this process. They answer like vLLM, or in the manner that a test sets.
type Farm struct {
	Servers []*Farmed

	http   http.Server
	byPort map[int]*Farmed
	text   []sample
	began  time.Time
}

// Farmed is one server of a farm.
type Farmed struct {
	URL string

	farm     *Farm
	port     int
	index    int
	manner   atomic.Uint32
	asked    atomic.Int64
	answered atomic.Int64

	mu     sync.Mutex // guards the fields below
	listen net.Listener
	held   int               // socket that reserves the port of a server that refuses
	open   map[net.Conn]bool // its connections; true: a request on it waits for its answer
	most   struct{ conns, questions int }
}

// NewFarm starts n servers with the metrics of a text, for the duration of a test. Their counters rise over time, at a
// different pace per server.
func NewFarm(tb testing.TB, text string, n int) *Farm {
	tb.Helper()
	f := &Farm{byPort: make(map[int]*Farmed), text: samples(text), began: time.Now()}
	f.http = http.Server{
		Handler: http.HandlerFunc(f.serve), ConnState: f.state, ErrorLog: log.New(io.Discard, "", 0), // clients that disconnect early are part of tests
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	tb.Cleanup(f.close)
	for i := range n {
		l := listenAt(tb, 0)
		s := &Farmed{URL: "http://" + l.Addr().String(), farm: f, port: portOf(l.Addr()), index: i, listen: l, open: make(map[net.Conn]bool)}
		f.Servers = append(f.Servers, s)
		f.byPort[s.port] = s
	}
	for _, s := range f.Servers {
		go f.http.Serve(s.listen) // until its listener closes
	}
	return f
}

// URLs returns the addresses of all servers.
func (f *Farm) URLs() (out []string) {
	for _, s := range f.Servers {
		out = append(out, s.URL)
	}
	return out
}

// Open returns the number of connections to all servers.
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

// Asked returns the number of requests received.
func (s *Farmed) Asked() int { return int(s.asked.Load()) }

// Answered returns how many times the server sent its metrics.
func (s *Farmed) Answered() int { return int(s.answered.Load()) }

// Most returns the highest number of concurrent connections, and of concurrent requests whose client was still waiting.
func (s *Farmed) Most() (conns, questions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most.conns, s.most.questions
}

// Set changes the server's manner.
func (s *Farmed) Set(tb testing.TB, m Manner) {
	tb.Helper()
	if was := Manner(s.manner.Swap(uint32(m))); (was == Refuses) == (m == Refuses) {
		return
	}
	if m == Refuses {
		s.hold(tb)
		return
	}
	s.listen = listenAt(tb, s.port)
	s.release()
	go s.farm.http.Serve(s.listen) // until its listener closes
}

// listenAt listens at a port, 0: any, which another socket of this program may have as well: so it is never free for
// others while a server stops or starts listening.
func listenAt(tb testing.TB, port int) net.Listener {
	tb.Helper()
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		return cmp.Or(failed, err)
	}}
	l, err := shared.Listen(tb.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// hold stops listening and closes all connections, but reserves the port.
func (s *Farmed) hold(tb testing.TB) {
	tb.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		tb.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	s.held = fd
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: s.port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		tb.Fatalf("keep port %d: %v", s.port, err)
	}
	_ = s.listen.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
}

func (s *Farmed) release() {
	if s.held > 0 {
		_ = syscall.Close(s.held)
		s.held = 0
	}
}

func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }

// state tracks connections.
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

// living returns the number of connections that the client has not closed.
func (s *Farmed) living() (n int) {
	for c := range s.open {
		if alive(c) {
			n++
		}
	}
	return n
}

// alive reports whether the client has not closed the connection, according to the kernel.
func alive(c net.Conn) bool {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	living := false
	var one [1]byte
	err = raw.Control(func(fd uintptr) { // not Read, which would wait for the other reader
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		living = n > 0 || err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err == nil && living
}

// connKey is the context key of a request's connection.
type connKey struct{}

// begin records a request and returns the function that ends it.
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
