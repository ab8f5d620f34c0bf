//go:build amd64 || arm64

package zmq

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// wire is a network link between a publisher and its subscriber that can be cut and delayed.
type wire struct {
	net.Listener
	to string

	mu   sync.Mutex // guards the fields below; while locked, nothing reaches the subscriber
	ends []net.Conn
	back bytes.Buffer // sent by the subscriber
	cut  bool
}

func lay(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: strings.TrimPrefix(to, "tcp://")}
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			sub, err := l.Accept()
			if err != nil {
				return
			}
			pub, err := net.Dial("tcp", w.to)
			if err != nil || !w.join(sub, pub) {
				_ = sub.Close()
				if pub != nil {
					_ = pub.Close()
				}
				continue
			}
			passing.Go(func() { _, _ = io.Copy(through(func(b []byte) (int, error) { w.pass(); return sub.Write(b) }), pub) })
			passing.Go(func() {
				_, _ = io.Copy(through(func(b []byte) (int, error) { w.note(b); return pub.Write(b) }), sub)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.set(true)
		passing.Wait()
	})
	return w
}

type through func([]byte) (int, error)

func (f through) Write(b []byte) (int, error) { return f(b) }

func (w *wire) join(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, ends...)
	return !w.cut
}

// pass waits while the wire is delayed.
func (w *wire) pass() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

func (w *wire) note(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.back.Write(b)
}

func (w *wire) sent() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.back.String()
}

// set cuts or restores the wire.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = cut; cut {
		for _, c := range w.ends {
			_ = c.Close()
		}
		w.ends = nil
	}
}
