package capture

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of an Assembler.
const (
	maxOpen    = 65_536   // connections that have sent data
	maxOpening = 16_384   // connections that have not, or have ended
	maxHeld    = 64 << 20 // bytes that wait for a hole, of all connections
	maxHeldOne = 8 << 20  // of one side of a connection

	maxSegments = 8192     // segments that wait, of one side
	maxJump     = 64 << 20 // a sequence number further away belongs to another stream
)

// Spans of packet time, in nanoseconds.
const (
	maxWait      = int64(time.Second)            // how long a side waits for a hole
	maxAckedWait = int64(10 * time.Millisecond)  // the same, if the other end has acknowledged it
	maxCopy      = int64(100 * time.Millisecond) // an equal SYN within it is a copy, a later one was sent again
	maxLinger    = int64(2 * time.Second)        // how long packets of a connection that has ended are ignored
	maxBack      = int64(5 * time.Second)        // the clock was set if times of any packets go back by more
	maxSilence   = int64(30 * 24 * time.Hour)    // the same, if nothing came for so long: machines without a clock begin in 1970
	maxDisorder  = int64(50 * time.Millisecond)  // the same, if both have new bytes of one connection
)

// Assembler puts the bytes of TCP connections in order.
//
// Bytes that come too early wait until the hole before them is filled. The hole is reported as a Gap as soon as nothing
// can fill it any more: the other end has acknowledged it, the capture has only the beginning of its packet, or a second
// has passed. Copies of a packet, as of loopback and bridges, are ignored as retransmissions are, and so is the second of
// two connections that are one, before and behind a translation of addresses.
type Assembler struct {
	options Options
	local   map[netip.Addr]bool // addresses of this machine
	conns   map[key]*conn
	births  map[uint64]*conn // by the numbers of their first packets, of conns
	opening list[conn]       // connections without data, and those that have ended, least recently used first
	open    list[conn]       // the others
	slow    list[half]       // sides that wait for a hole, since when, the longest first
	fast    list[half]       // the same, for holes that the other end has acknowledged
	held    int              // bytes that wait
	now     int64            // time of the newest packet
	ahead   int64            // to be added to times, so that they go on where the clock was set back
	sets    int              // how often it was
	packet  packet

	mu     sync.Mutex // guards what follows
	first  int64
	losses Losses
}

// key are the ends of a connection, the smaller first.
type key [2]netip.AddrPort

// conn is a connection.
type conn struct {
	node[conn]
	key      key
	client   int8 // index of the client, -1: unknown
	whole    bool
	ended    bool
	unsure   bool // a part of the handshake was sent again, so that times of it are ambiguous
	opened   bool // Options.Open was called
	listener Listener
	used     int64   // time of the last packet
	news     int64   // latest time of new bytes
	half     [2]half // of the ends in key
	birth    uint64  // sequence number and acknowledgement of the first packet
	born     int64   // its time
	sets     int     // Assembler.sets at its first packet
	synAt    int64   // times of the handshake
	synAckAt int64
	ackAt    int64
}

// ignored reports whether nobody listens to a connection.
func (c *conn) ignored() bool { return c.opened && !c.ended && c.listener == nil }

// NewAssembler returns an assembler.
func NewAssembler(o Options) *Assembler {
	return &Assembler{options: o, conns: map[key]*conn{}, births: map[uint64]*conn{}}
}

// Losses returns what was lost so far. It may be called from any goroutine.
func (a *Assembler) Losses() Losses {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.losses
}

// First returns the time of the first packet of TCP, or the zero time. It may be called from any goroutine.
func (a *Assembler) First() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first == 0 {
		return time.Time{}
	}
	return time.Unix(0, a.first)
}

// lose adds n to a count of losses.
func (a *Assembler) lose(count *int, n int) {
	a.mu.Lock()
	*count += n
	a.mu.Unlock()
}

// frame takes the next frame.
func (a *Assembler) frame(f *frame) {
	p := &a.packet
	switch p.decode(f) {
	case decoded:
		a.segment(p)
	case fragment:
		a.lose(&a.losses.Fragments, 1)
	case malformed:
		a.lose(&a.losses.Malformed, 1)
	case short:
		a.lose(&a.losses.Truncated, 1)
	case unknownLink:
		a.lose(&a.losses.Links, 1)
	}
}

// advance sets the time to that of a packet, and reports holes that have waited too long.
func (a *Assembler) advance(p *packet) {
	p.at += a.ahead
	switch {
	case a.first == 0:
		a.mu.Lock()
		a.first = max(p.at, 1)
		a.mu.Unlock()
		a.now = p.at
	case p.at < a.now-maxBack, p.at > a.now+maxSilence, a.ahead > 0 && p.at-a.now > a.ahead-a.ahead/8 && p.at-a.now < a.ahead+a.ahead/8+maxDisorder:
		a.wind(p) // set back, or forward again
	case p.at > a.now:
		a.expire(p.at)
		a.now = p.at
	}
}

// wind lets time go on where it was, since the clock was set before a packet. How much time has passed is unknown.
func (a *Assembler) wind(p *packet) {
	a.expire(a.now + maxWait)
	a.ahead += a.now - p.at
	p.at = a.now
	a.sets++
	a.lose(&a.losses.Clock, 1)
	if a.options.Wound != nil {
		a.options.Wound(time.Unix(0, p.at))
	}
}

// segment takes the next segment of TCP.
func (a *Assembler) segment(p *packet) {
	port := a.options.Port
	switch {
	case port == 0 || p.dst.Port() == port:
	case p.src.Port() != port || p.flags&(flagSYN|flagACK) == flagSYN: // or a client whose own port this is
		return
	}
	a.advance(p)
	k, from := key{p.src, p.dst}, 0
	if p.src.Compare(p.dst) > 0 {
		k, from = key{p.dst, p.src}, 1
	}
	c := a.conns[k]
	if c != nil && a.isNew(c, from, p) {
		a.end(c, p.at, Abandoned)
		a.remove(c)
		c = nil
	}
	if c == nil {
		if p.flags&(flagSYN|flagRST) != flagSYN && len(p.payload)+p.missing == 0 {
			return // the end, or an acknowledgement, of a connection that is not followed
		}
		c = a.add(k, p)
	}
	if p.at/int64(time.Second) != c.used/int64(time.Second) { // often enough, and its neighbours are left alone
		c.list.moveToBack(&c.node)
	}
	c.used = p.at
	if c.ended || c.ignored() {
		return
	}
	if h := &c.half[from]; h.dir == unknownDirection {
		h.dir = p.dir
	}
	a.handshake(c, from, p)
	switch {
	case p.flags&flagRST != 0:
		a.reset(c, from, p)
		return
	case p.flags&flagACK != 0:
		a.acknowledge(c, 1-from, p)
	}
	if n := len(p.payload) + p.missing; n > 0 || p.flags&flagFIN != 0 {
		a.settle(&c.half[1-from])
		a.data(c, from, p)
	}
}

// isNew reports whether a packet begins another connection between the ends of c.
func (a *Assembler) isNew(c *conn, from int, p *packet) bool {
	h := &c.half[from]
	switch {
	case p.flags&flagRST != 0:
		return false
	case p.flags&flagSYN != 0 && c.ignored():
		return p.flags&flagACK == 0 && uint32(c.birth>>32) != p.seq
	case p.flags&flagSYN != 0:
		return h.started && h.isn != p.seq
	}
	return c.ended && p.at-c.used > maxLinger && len(p.payload) > 0
}

// add returns a new connection for its first packet.
func (a *Assembler) add(k key, p *packet) *conn {
	c := &conn{key: k, client: -1}
	c.value = c
	for i := range c.half {
		h := &c.half[i]
		h.conn, h.value = c, h
	}
	if port := a.options.Port; port != 0 && k[0].Port() != k[1].Port() {
		c.client = 0
		if k[0].Port() == port {
			c.client = 1
		}
	}
	a.conns[k] = c
	c.birth, c.born, c.sets = uint64(p.seq)<<32|uint64(p.ack), p.at, a.sets
	if twin := a.births[c.birth]; twin == nil {
		a.births[c.birth] = c
	} else if p.at-twin.born < maxCopy {
		// The machine forwards the packets to another address, such as a container's, and both are captured: translation of
		// addresses keeps these numbers, which are random.
		c.opened = true
	}
	a.opening.pushBack(&c.node)
	for a.opening.n > maxOpening {
		oldest := a.opening.front.value
		if !oldest.ended && !oldest.ignored() {
			a.lose(&a.losses.Connections, 1)
		}
		a.remove(oldest)
	}
	return c
}

// remove forgets a connection, which must have ended or never opened.
func (a *Assembler) remove(c *conn) {
	for i := range c.half {
		a.drop(&c.half[i])
	}
	c.list.remove(&c.node)
	delete(a.conns, c.key)
	if a.births[c.birth] == c {
		delete(a.births, c.birth)
	}
}

// handshake notes the beginning of a connection, and its times.
func (a *Assembler) handshake(c *conn, from int, p *packet) {
	h, o := &c.half[from], &c.half[1-from]
	if p.flags&flagSYN == 0 {
		if c.ackAt == 0 && c.synAckAt != 0 && int(c.client) == from && len(p.payload)+p.missing == 0 && p.ack == o.isn+1 {
			c.ackAt = p.at
		}
		return
	}
	at := &c.synAt
	if p.flags&flagACK != 0 {
		at = &c.synAckAt
		if c.client < 0 {
			c.client = int8(1 - from)
		}
		o.start(p.ack - 1) // if SYN itself was not captured
	} else if c.client < 0 {
		c.client = int8(from)
	}
	c.whole = true
	if !h.start(p.seq) {
		c.unsure = c.unsure || p.at-*at > maxCopy
		return
	}
	*at = p.at
}

// reset ends a connection for RST.
func (a *Assembler) reset(c *conn, from int, p *packet) {
	if h := &c.half[from]; h.started && p.seq != 0 && far(p.seq, h.next) {
		return // not of this connection
	}
	why := ResetByServer
	if int(c.client) == from {
		why = ResetByClient
	}
	a.end(c, p.at, why)
}

// end delivers what waits, and ends a connection. It stays known for a while so that late packets are not taken for a
// new one.
func (a *Assembler) end(c *conn, at int64, why Ending) {
	if c.ended {
		return
	}
	for i := range c.half {
		a.flush(&c.half[i])
	}
	if c.ended { // both have closed by that
		return
	}
	c.ended = true
	if c.listener != nil {
		c.listener.End(time.Unix(0, max(at, c.half[0].last, c.half[1].last)), why)
		c.listener = nil
	}
	c.list.remove(&c.node)
	a.opening.pushBack(&c.node)
	for i := range c.half {
		a.drop(&c.half[i])
	}
}

// opens returns whether somebody listens to a connection. It opens it for its first bytes.
func (a *Assembler) opens(c *conn) bool {
	if c.opened || c.ended {
		return c.listener != nil
	}
	c.opened = true
	c.listener = a.options.Open(a.flow(c))
	c.list.remove(&c.node)
	a.open.pushBack(&c.node)
	if a.open.n > maxOpen {
		oldest := a.open.front.value
		if !oldest.ignored() {
			a.lose(&a.losses.Connections, 1)
		}
		a.end(oldest, a.now, Abandoned)
		a.remove(oldest)
	}
	return c.listener != nil
}

// flow describes a connection.
func (a *Assembler) flow(c *conn) *Flow {
	client, server := &c.half[c.client], &c.half[1-c.client]
	f := &Flow{Client: c.key[c.client], Server: c.key[1-c.client], Whole: c.whole}
	if !c.unsure && c.sets == a.sets && c.synAt != 0 && c.synAckAt >= c.synAt {
		f.ServerRTT = time.Duration(c.synAckAt - c.synAt)
		if c.ackAt >= c.synAckAt {
			f.RTT = time.Duration(c.ackAt - c.synAt)
		}
	}
	switch {
	case f.Client.Addr() == f.Server.Addr() || f.Server.Addr().IsLoopback():
		f.AtClient, f.AtServer = true, true
	case a.local[f.Client.Addr()] || a.local[f.Server.Addr()]:
		f.AtClient, f.AtServer = a.local[f.Client.Addr()], a.local[f.Server.Addr()]
	case client.dir != unknownDirection && server.dir != unknownDirection && client.dir != server.dir:
		f.AtClient, f.AtServer = client.dir == outgoing, server.dir == outgoing
	case f.RTT != 0: // at an end, or so near that it makes no difference
		f.AtClient, f.AtServer = f.ServerRTT >= f.RTT/5*4, f.ServerRTT <= f.RTT/5
	}
	return f
}

// stop ends every connection.
func (a *Assembler) stop() {
	for _, l := range []*list[conn]{&a.open, &a.opening} {
		for l.front != nil {
			c := l.front.value
			a.end(c, a.now, Stopped)
			a.remove(c)
		}
	}
}
