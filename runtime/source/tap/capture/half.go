package capture

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// half is what one end of a connection sends.
type half struct {
	node[half] // in slow or fast while it waits for a hole
	conn       *conn
	started    bool   // next is known
	isn        uint32 // sequence number of SYN, or, if that was not captured, one before the first byte seen
	next       uint32 // sequence number of the next byte to deliver
	acked      uint32 // the other end has all bytes before it, if hasAck
	hasAck     bool
	fin        bool // FIN was seen, after the byte before finSeq
	finSeq     uint32
	closed     bool
	jumped     bool // the last packet was of another stream, which went on at jump
	jump       uint32
	dir        direction // of its first packet
	last       int64     // time of the last bytes delivered
	since      int64     // when it began to wait
	waits      []held    // by sequence number
	size       int       // bytes of waits
}

// held is a segment that waits for a hole before it. Those of a side do not overlap.
type held struct {
	at      int64
	seq     uint32
	b       []byte
	missing int // bytes behind it that the capture lacks
}

// overhead is the memory of a segment that waits, besides its bytes.
const overhead = 64

// distance returns how far x is behind y, negative if it is before it.
func distance(x, y uint32) int { return int(int32(x - y)) }

// far reports whether two sequence numbers cannot be of one stream.
func far(x, y uint32) bool { return distance(x, y) > maxJump || distance(x, y) < -maxJump }

// start sets the sequence number of SYN. It is false if that is known.
func (h *half) start(isn uint32) bool {
	if h.started {
		return false
	}
	h.started, h.isn, h.next = true, isn, isn+1
	return true
}

// side returns which end this is.
func (h *half) side() Side {
	if h == &h.conn.half[h.conn.client] {
		return Client
	}
	return Server
}

// acknowledge notes that the other end has the bytes of half to before p.ack.
func (a *Assembler) acknowledge(c *conn, to int, p *packet) {
	h := &c.half[to]
	if !h.started {
		if from := &c.half[1-to]; c.whole && p.seq == from.isn+1 {
			h.start(p.ack - 1) // its SYN was not captured
		}
		return
	}
	if far(p.ack, h.next) || h.hasAck && distance(p.ack, h.acked) <= 0 {
		return
	}
	h.acked, h.hasAck = p.ack, true
	a.wait(h)
}

// data takes the payload of a segment, and FIN.
func (a *Assembler) data(c *conn, from int, p *packet) {
	h := &c.half[from]
	if p.missing > 0 {
		a.lose(&a.losses.Truncated, 1)
	}
	seq, b, missing := p.seq, p.payload, p.missing
	if p.flags&flagSYN != 0 {
		seq++
	}
	if c.client < 0 && !c.guess(from, b) || h.closed {
		return
	}
	h.start(seq - 1)
	n := len(b) + missing
	if far(seq, h.next) {
		if !h.jumped || seq != h.jump { // it may be a stray packet: wait for the next
			h.jumped, h.jump = true, seq+uint32(n)
			return
		}
		a.flush(h)
		a.gap(h, p.at, -1)
		h.next, h.fin, h.hasAck = seq, false, false
	}
	h.jumped = false
	if distance(seq, h.next) >= 0 && n > 0 {
		if disorder := cmp.Or(p.disorder, maxDisorder); p.at < c.news-disorder {
			a.wind(p)
		}
		c.news = max(c.news, p.at)
	}
	if p.flags&flagFIN != 0 && !h.fin {
		h.fin, h.finSeq = true, seq+uint32(n)
	}
	switch d := distance(seq, h.next); {
	case n == 0 || -d >= n: // old
	case d <= 0:
		h.list.remove(&h.node)
		a.deliver(h, held{at: p.at, seq: seq, b: b, missing: missing})
		a.drain(h)
	default:
		a.hold(h, held{at: p.at, seq: seq, b: b, missing: missing})
	}
	a.finish(h, p.at)
	a.wait(h)
}

// guess finds out by the first bytes of a message who is the client, and reports whether it is known.
func (c *conn) guess(from int, b []byte) bool {
	switch method, _, ok := bytes.Cut(b[:min(len(b), 16)], []byte(" ")); {
	case bytes.HasPrefix(b, []byte("HTTP/1.")):
		c.client = int8(1 - from)
	case ok && slices.Contains(methods, string(method)), len(b) > 5 && b[0] == 22 && b[1] == 3 && b[5] == 1: // TLS ClientHello
		c.client = int8(from)
	}
	return c.client >= 0
}

// methods begin the requests of HTTP, and PRI the connections of HTTP/2.
var methods = []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"}

// deliver reports a segment that begins at or before the next byte.
func (a *Assembler) deliver(h *half, s held) {
	old := min(distance(h.next, s.seq), len(s.b))
	missing := s.missing - (distance(h.next, s.seq) - old)
	if b := s.b[old:]; len(b) > 0 {
		h.next += uint32(len(b))
		at := h.time(s.at)
		if a.opens(h.conn) {
			h.conn.listener.Data(h.side(), at, b)
		}
	}
	if missing > 0 {
		a.gap(h, s.at, missing)
	}
}

// time returns the time of a delivery, which is not before an earlier one, and notes it.
func (h *half) time(at int64) time.Time {
	h.last = max(h.last, at)
	return time.Unix(0, h.last)
}

// gap reports that bytes were never captured. -1: unknown number.
func (a *Assembler) gap(h *half, at int64, n int) {
	a.mu.Lock()
	a.losses.Gaps++
	a.losses.Bytes += max(n, 0)
	a.mu.Unlock()
	h.next += uint32(max(n, 0))
	t := h.time(at)
	if a.opens(h.conn) {
		h.conn.listener.Gap(h.side(), t, n)
	}
}

// hold keeps what is new of a segment until the hole before it is filled.
func (a *Assembler) hold(h *half, s held) {
	for {
		i := len(h.waits)
		for i > 0 && distance(h.waits[i-1].seq, s.seq) > 0 {
			i--
		}
		if i > 0 {
			s = s.from(h.waits[i-1].end())
		}
		if len(s.b) == 0 {
			break
		}
		rest := held{}
		if i < len(h.waits) && distance(s.end(), h.waits[i].seq) > 0 {
			rest = s.from(h.waits[i].end())
			s.b = s.b[:distance(h.waits[i].seq, s.seq)]
		}
		if len(s.b) > 0 {
			s.b = bytes.Clone(s.b)
			h.waits = slices.Insert(h.waits, i, s)
			h.size += len(s.b) + overhead
			a.held += len(s.b) + overhead
		}
		if s = rest; len(s.b) == 0 {
			break
		}
	}
	if h.size > maxHeldOne || a.held > maxHeld || len(h.waits) > maxSegments {
		a.flush(h)
	}
}

// end returns the sequence number behind the bytes of a segment.
func (s held) end() uint32 { return s.seq + uint32(len(s.b)) }

// from returns what a segment has from a sequence number on.
func (s held) from(seq uint32) held {
	if n := min(distance(seq, s.seq), len(s.b)); n > 0 {
		s.seq, s.b = s.seq+uint32(n), s.b[n:]
	}
	return s
}

// drain delivers what waited for what was just delivered.
func (a *Assembler) drain(h *half) {
	n := 0
	for n < len(h.waits) && distance(h.waits[n].seq, h.next) <= 0 {
		s := h.waits[n]
		h.waits[n] = held{}
		n++
		h.size -= len(s.b) + overhead
		a.held -= len(s.b) + overhead
		if n < len(h.waits) { // another copy may have what this one lacks
			s.missing = min(s.missing, distance(h.waits[n].seq, s.end()))
		}
		if distance(h.next, s.seq) < len(s.b)+s.missing {
			a.deliver(h, s)
		}
	}
	if h.waits = h.waits[n:]; len(h.waits) == 0 {
		h.waits = nil
	}
}

// finish closes a side if all its bytes were delivered, and ends the connection if both have closed.
func (a *Assembler) finish(h *half, at int64) {
	if !h.fin || h.closed || distance(h.finSeq, h.next) > 0 {
		return
	}
	h.closed = true
	c := h.conn
	a.drop(h)
	if c.listener != nil {
		c.listener.Close(h.side(), h.time(at))
	}
	if c.half[0].closed && c.half[1].closed {
		a.end(c, at, Closed)
	}
}

// wait puts a side where it is waited for the hole that it has, if it has one.
func (a *Assembler) wait(h *half) {
	var l *list[half]
	switch {
	case h.closed || h.conn.ended:
	case h.lacks() > 0:
		l = &a.fast
	case len(h.waits) > 0 || h.fin && distance(h.finSeq, h.next) > 0:
		l = &a.slow
	}
	if h.list == l {
		return
	}
	h.list.remove(&h.node)
	if l != nil {
		h.since = a.now
		l.pushBack(&h.node)
	}
}

// lacks returns how many bytes the other end has acknowledged that are missing before what waits. A single one with
// nothing behind it may be a FIN that was not captured: it is not counted.
func (h *half) lacks() int {
	if !h.hasAck {
		return 0
	}
	n := distance(h.acked, h.next)
	if h.fin {
		n = min(n, distance(h.finSeq, h.next))
	}
	if len(h.waits) > 0 {
		return min(n, distance(h.waits[0].seq, h.next))
	}
	if n == 1 && !h.fin {
		return 0
	}
	return n
}

// expire reports holes that have waited too long at a time.
func (a *Assembler) expire(now int64) {
	for n := a.fast.front; n != nil && now-n.value.since > maxAckedWait; n = a.fast.front {
		h := n.value
		h.list.remove(&h.node)
		for lacks := h.lacks(); lacks > 0; lacks = h.lacks() {
			a.fill(h, lacks)
		}
		a.finish(h, a.now)
		a.wait(h)
	}
	for n := a.slow.front; n != nil && now-n.value.since > maxWait; n = a.slow.front {
		h := n.value
		h.list.remove(&h.node)
		a.flush(h)
		a.finish(h, a.now)
	}
}

// settle reports what a side lacks before the other end's next bytes, which were sent after it: so a request comes after
// the answer to the one before, and an answer after its request. A last packet of the server that comes a little late is
// waited for, since nothing behind it can be taken for a part of the next answer.
func (a *Assembler) settle(h *half) {
	for n := h.lacks(); n > 0 && (len(h.waits) > 0 || h.side() == Client); n = h.lacks() {
		a.fill(h, n)
	}
	a.finish(h, a.now)
	a.wait(h)
}

// fill reports the next n bytes as missing, and delivers what waited for them.
func (a *Assembler) fill(h *half, n int) {
	at := a.now
	if len(h.waits) > 0 {
		at = h.waits[0].at
	}
	h.list.remove(&h.node)
	a.gap(h, at, n)
	a.drain(h)
}

// flush delivers all that waits, with the holes in between.
func (a *Assembler) flush(h *half) {
	for len(h.waits) > 0 {
		a.fill(h, distance(h.waits[0].seq, h.next))
	}
	if h.fin && !h.closed {
		if n := distance(h.finSeq, h.next); n > 0 {
			a.fill(h, n)
		}
	}
	a.drop(h)
}

// drop forgets what waits.
func (a *Assembler) drop(h *half) {
	a.held -= h.size
	h.size, h.waits = 0, nil
	h.list.remove(&h.node)
}
