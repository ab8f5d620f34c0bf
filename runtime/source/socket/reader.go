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
	// chunk is the number of events that a reader copies at once while producers wait: 176 bytes each, about 20 µs.
	chunk = 256
	// gather is how long events wait for others to share their line and system call: each write wakes the reader's
	// program. If rush events arrive within one wait, the next wait is rushed, so that the ring does not overflow.
	gather = 25 * time.Millisecond
	rushed = 5 * time.Millisecond
	rush   = 256
	// flush is the buffer size at which lines are written, in bytes.
	flush = 64 << 10
	// heartbeat is the interval of heartbeats.
	heartbeat = time.Second
	// tokenTimeout is the time limit for sending the token.
	tokenTimeout = 5 * time.Second
)

// reader is one connection to a server. Its fields belong to its own goroutine unless a comment says otherwise.
type reader struct {
	server   *Server
	conn     net.Conn
	controls event.Caps // messages that this reader may send

	cursor   cursor // also set by enter
	events   []event.Event
	lost     event.Drops // dropped for this reader
	reported event.Drops // drops reported to the reader, including those of sources
	missed   uint64      // number of the first event dropped since the last state, plus 1; 0: none
	until    uint64      // number of the first event after the last drop
	sent     uint64      // events
	steps    []event.Event
	tokens   []event.Event
	out      []byte

	woken chan struct{}
	hurry chan struct{} // holds a token if events should be sent without waiting for others
	idle  bool          // guarded by the server's mutex: waiting for woken

	withText textRequests // requests whose text this reader gets

	mu      sync.Mutex // guards the fields below
	replies []byte     // encoded replies
}

// serve talks to one reader until it disconnects or the server closes.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	r := &reader{server: s, conn: conn, woken: make(chan struct{}, 1), hurry: make(chan struct{}, 1), events: make([]event.Event, 0, chunk)}
	stop := make(chan struct{})
	defer close(stop)
	s.wait.Go(func() {
		select {
		case <-s.closing:
			_ = conn.SetDeadline(time.Now().Add(shortTimeout))
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
		if why != "" { // talk may be blocked writing
			_ = conn.SetWriteDeadline(time.Now().Add(shortTimeout))
		}
		gone <- why
	})
	r.talk(gone)
}

// admit requests and checks the token.
func (r *reader) admit(l *lines) bool {
	_ = r.conn.SetDeadline(time.Now().Add(tokenTimeout))
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
	return !r.server.closes() // closing sets a deadline, which the line before may have removed
}

// wrongToken is the reason sent to a reader with a wrong token.
const wrongToken = "wrong token"

// talk writes events until the connection breaks, the reader leaves (gone has the reason to drop it, or "") or the
// server closes.
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

// finish writes the remaining events.
func (r *reader) finish() {
	if r.drain() == nil {
		r.bye("the engine closes the socket")
	}
}

// waiting returns the channel that the next event or reply signals.
func (r *reader) waiting() <-chan struct{} {
	s := r.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.cursor.next < s.ring.head || s.lost.Total() != r.sourceLost() || r.answers(): // already there
		if !r.idle && len(r.woken) == 0 {
			r.woken <- struct{}{}
		}
	case !r.idle && len(r.woken) == 0:
		r.idle = true
		s.idle++
	}
	return r.woken
}

// rush sends pending events without further delay.
func (r *reader) rush() {
	select {
	case r.hurry <- struct{}{}:
	default:
	}
}

// sourceLost returns how many of the reported drops happened at the sources.
func (r *reader) sourceLost() uint64 { return r.reported.Total() - r.lost.Total() }

// drain writes all pending events.
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
		r.withhold(r.events)
		r.encode()
		if total != r.reported {
			r.reported = total
			r.session(&wire.Session{Type: wire.Dropped, At: s.opt.Clock.Now(), Events: r.sent + total.Total()})
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

// beat appends a heartbeat.
func (r *reader) beat() {
	at := r.server.opt.Clock.Now()
	r.session(&wire.Session{Type: wire.Clock, At: at, Wall: time.Now().UnixNano(), Events: r.sent + r.reported.Total()})
}

// sync appends the state. Its events do not count as sent.
func (r *reader) sync(past []event.Event) {
	r.session(&wire.Session{Type: wire.Sync})
	r.withhold(past)
	for i := range past {
		r.one(&past[i])
		if len(r.out) >= flush && r.write() != nil {
			return
		}
	}
	r.session(&wire.Session{Type: wire.Synced})
}

// session appends a line about the connection.
func (r *reader) session(s *wire.Session) {
	r.out = append(wire.AppendSession(r.out, s, &r.reported), '\n')
}

// bye writes the last line.
func (r *reader) bye(why string) {
	_ = r.conn.SetWriteDeadline(time.Now().Add(shortTimeout))
	r.session(&wire.Session{Type: wire.Bye, Reason: why})
	_ = r.write()
}

// write writes the encoded lines. It may block; nothing waits for it.
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

// answers reports whether replies are waiting.
func (r *reader) answers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.replies) > 0
}

// takeReplies appends the waiting replies.
func (r *reader) takeReplies() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = append(r.out, r.replies...)
	r.replies = r.replies[:0]
}
