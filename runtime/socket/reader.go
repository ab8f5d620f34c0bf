package socket

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

const (
	// chunk is how many events a reader takes at a time while producers wait, 176 bytes each: some 20 µs.
	chunk = 256
	// gather is how long events wait for others to go into the same line and the same system call: each wakes the reader's program up. From
	// rush events on that came within one wait, the next one is rushed, so that the ring does not run full.
	gather = 25 * time.Millisecond
	rushed = 5 * time.Millisecond
	rush   = 256
	// flush is how many bytes are written at a time.
	flush = 64 << 10
	// heartbeat is how often a reader hears that the engine is there.
	heartbeat = time.Second
	// allowed is how long a reader may take for its token.
	allowed = 5 * time.Second
)

// reader is one connection to a server. All but what is said below belongs to its own goroutine.
type reader struct {
	server   *Server
	conn     net.Conn
	controls event.Caps // messages that this reader may send

	cursor cursor // also of enter
	events []event.Event
	lost   event.Lost // for this reader
	told   event.Lost // what it knows to be lost, sources included
	missed uint64     // number of the first event that it has missed since it was last brought up to date, plus 1; 0: none
	until  uint64     // and of the first one after those
	sent   uint64
	steps  []event.Event
	tokens []event.Event
	out    []byte

	woken chan struct{}
	hurry chan struct{} // holds a token if there is what somebody may wait for: it does not wait for events to go along
	idle  bool          // guarded by the server's mutex: it waits for woken

	mu      sync.Mutex // guards what follows
	replies []byte     // lines for the reader
}

// serve talks to one reader until it goes or the server closes.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	r := &reader{server: s, conn: conn, woken: make(chan struct{}, 1), hurry: make(chan struct{}, 1), events: make([]event.Event, 0, chunk)}
	stop := make(chan struct{})
	defer close(stop)
	s.wait.Go(func() {
		select {
		case <-s.closing:
			_ = conn.SetDeadline(time.Now().Add(patience))
		case <-stop:
		}
	})
	lines := newLines(conn)
	lines.strict = true
	if s.opt.Token != "" && !r.admit(lines) {
		return
	}
	if s.opt.Controller != nil && (s.address.network == "unix" || s.opt.Token != "") {
		r.controls = s.opt.Controller.Controls() & controlCaps
	}
	hello, past, err := s.enter(r)
	if err != nil {
		r.bye(err.Error())
		return
	}
	defer s.leave(r)
	r.out = append(hello, '\n')
	r.sync(past)
	gone := make(chan string, 1)
	s.wait.Go(func() {
		why := r.listen(lines)
		if why != "" { // talk may be writing to somebody who does not read
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
		}
		gone <- why
	})
	r.talk(gone)
}

// admit asks for the token.
func (r *reader) admit(l *lines) bool {
	_ = r.conn.SetDeadline(time.Now().Add(allowed))
	r.session(&wire.Session{Type: wire.Auth})
	if r.write() != nil {
		return false
	}
	l.most = wire.MaxToken
	line, err := l.next()
	if err != nil {
		return false
	}
	l.most = wire.MaxControl
	c, err := new(wire.Decoder).DecodeControl(line)
	given, wanted := sha256.Sum256([]byte(c.Token)), sha256.Sum256([]byte(r.server.opt.Token))
	if subtle.ConstantTimeCompare(given[:], wanted[:]) == 0 || err != nil || c.Type != wire.Login {
		r.bye(wrongToken)
		return false
	}
	_ = r.conn.SetDeadline(time.Time{})
	return !r.server.closes() // whose deadline this would have undone
}

// wrongToken is what a reader hears whose token is not the right one.
const wrongToken = "wrong token"

// talk writes what happens until the connection breaks, the reader goes (gone says why it is not wanted, or nothing) or the server
// closes.
func (r *reader) talk(gone <-chan string) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		wait, before := gather, r.cursor.next
		if r.drain() != nil {
			return
		}
		if r.cursor.next-before >= rush {
			wait = rushed
		}
		select {
		case <-r.server.closing:
			r.finish()
			return
		case why := <-gone:
			if r.server.closes() {
				r.finish()
			} else if why != "" {
				r.takeReplies()
				r.bye(why)
			}
			return
		case <-beat.C:
			r.beat()
		case <-r.waiting():
			select {
			case <-time.After(wait):
			case <-r.hurry:
			case <-r.server.closing:
			}
		}
	}
}

// finish writes what is left.
func (r *reader) finish() {
	if r.drain() == nil {
		r.bye("the engine closes the socket")
	}
}

// waiting asks to be woken by the next event or reply.
func (r *reader) waiting() <-chan struct{} {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.cursor.next < s.ring.head || s.lost.Total() != r.sourceLost() || r.answers(): // it has come already
		if !r.idle && len(r.woken) == 0 {
			r.woken <- struct{}{}
		}
	case !r.idle && len(r.woken) == 0:
		r.idle = true
		s.idle++
	}
	return r.woken
}

// rush has what there is written soon.
func (r *reader) rush() {
	select {
	case r.hurry <- struct{}{}:
	default:
	}
}

// sourceLost is how much of what the reader knows to be lost was lost by the sources.
func (r *reader) sourceLost() uint64 { return r.told.Total() - r.lost.Total() }

// drain writes what there is.
func (r *reader) drain() error {
	for {
		before := r.lost
		from := r.cursor.next
		s := r.server
		s.mu.Lock()
		r.events = s.ring.take(&r.cursor, r.events[:0], &r.lost)
		total := s.lost
		end := r.cursor.next == s.ring.head
		var past []event.Event
		if r.lost != before && r.missed == 0 {
			r.missed = from + 1
		}
		if r.lost != before {
			r.until = r.cursor.next - uint64(len(r.events))
		}
		if end && r.missed > 0 {
			past = s.state.since(r.missed-1, r.until)
			r.missed = 0
		}
		s.mu.Unlock()
		for k := range total {
			total[k] += r.lost[k]
		}
		r.encode()
		if total != r.told {
			r.told = total
			r.session(&wire.Session{Type: wire.Lost, At: s.opt.Clock.Now(), Events: r.sent + total.Total()})
		}
		if past != nil {
			r.sync(past)
		}
		r.takeReplies()
		if end || len(r.out) >= flush {
			if err := r.write(); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// beat says that the engine is there.
func (r *reader) beat() {
	at := r.server.opt.Clock.Now()
	r.session(&wire.Session{Type: wire.Clock, At: at, Wall: time.Now().UnixNano(), Events: r.sent + r.told.Total()})
}

// sync brings the reader up to date. These events do not count as sent.
func (r *reader) sync(past []event.Event) {
	r.session(&wire.Session{Type: wire.Sync})
	for i := range past {
		r.one(&past[i])
		if len(r.out) >= flush && r.write() != nil {
			return
		}
	}
	r.session(&wire.Session{Type: wire.Synced})
}

// session adds a line about the connection.
func (r *reader) session(s *wire.Session) {
	r.out = append(wire.AppendSession(r.out, s, &r.told), '\n')
}

// bye is the last line.
func (r *reader) bye(why string) {
	_ = r.conn.SetWriteDeadline(time.Now().Add(patience))
	r.session(&wire.Session{Type: wire.Bye, Why: why})
	_ = r.write()
}

// write hands to the system what was encoded. It may block; nobody waits for it.
func (r *reader) write() error {
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.conn.Write(r.out)
	r.out = r.out[:0]
	if cap(r.out) > wire.MaxLine {
		r.out = nil
	}
	if err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}

// answers reports whether there are answers to messages.
func (r *reader) answers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.replies) > 0
}

// takeReplies adds the answers to messages.
func (r *reader) takeReplies() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = append(r.out, r.replies...)
	r.replies = r.replies[:0]
}
