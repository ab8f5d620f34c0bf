// Package capture reads packets, live or from a capture file, and puts the bytes of each TCP connection in order.
//
// It decodes, orders and reads files itself. The library gopacket has all three, but its packet layers add 1.7 MB and
// 0.4 ms to each start of the program, allocate for each packet of a pcapng file, and its assembler keeps whole pages
// for each byte that waits and has no bound for connections. The ring for live packets, and what tests compare with, are
// gopacket's.
package capture

import (
	"net/netip"
	"time"
)

// Side is an end of a connection.
type Side uint8

// The ends of a connection.
const (
	Client Side = iota // the end that connected
	Server             // the end that accepted
)

// Flow describes a TCP connection as far as it was captured. The reader fills it before it calls Options.Open, and does
// not change it after that.
type Flow struct {
	Client, Server netip.AddrPort

	// Whole: the beginning of the connection was captured. Otherwise the first byte of either side may stand anywhere in
	// a message.
	Whole bool

	// RTT is the network's round-trip time between client and server, wherever the packets were captured: from the
	// client's SYN to its acknowledgement. ServerRTT is the part of it between the point of capture and the server, from
	// SYN to SYN-ACK. 0: not seen, or ambiguous because a part of the handshake was sent again.
	RTT, ServerRTT time.Duration

	// AtServer and AtClient report that packets were captured on the server's or client's machine: both on loopback, none
	// if it is unknown or in between.
	AtServer, AtClient bool
}

// Listener gets what the two ends of one connection send, each in order. One goroutine makes all calls. Times are the
// kernel's, of the packet that completed what is reported, until its clock is set back (Options.Wound). They never go back
// for one side; across connections they may be up to a second older than that of an earlier call, for bytes that waited for
// a missing packet that never came.
type Listener interface {
	// Data reports the next bytes of one side. at is the time of the packet that made the last byte available: if an
	// earlier packet arrived later, that one's. b is valid during the call.
	Data(from Side, at time.Time, b []byte)
	// Gap reports that bytes were never captured. They stand before the next Data of this side. -1: unknown number.
	Gap(from Side, at time.Time, bytes int)
	// Close reports that one side has sent all its bytes (FIN). The other may still send.
	Close(from Side, at time.Time)
	// End reports that nothing more follows, and why.
	End(at time.Time, why Ending)
}

// Ending is why nothing more follows of a connection.
type Ending uint8

// The endings of a connection.
const (
	Closed        Ending = iota // both sides have closed it
	ResetByClient               // RST
	ResetByServer
	Abandoned // its ports are used again, or too many connections are open
	Stopped   // the capture has ended
)

// Options say which connections to follow.
type Options struct {
	// Port is the server's TCP port. 0: any, in which case the client is the end that sent SYN, else whose bytes begin
	// with the method of an HTTP request.
	Port uint16
	// Open returns the listener of a connection, when the first byte of either side arrives. nil: ignore the connection.
	Open func(*Flow) Listener
	// Wound is called when the clock that stamps packets was set, before what came then is reported. Times go on from at, where
	// they were: by how much they would have advanced is unknown. nil: nobody needs to know.
	Wound func(at time.Time)
}

// Losses count what could not be delivered.
type Losses struct {
	Dropped     int // packets that the kernel dropped because they were read too slowly
	Truncated   int // packets of which the capture holds only a part
	Malformed   int // packets or blocks of the file with impossible headers
	Fragments   int // IP fragments, which are not put together
	Links       int // packets of a link type that is not supported
	Gaps        int // places in streams at which bytes are missing
	Bytes       int // bytes missing there, as far as known
	Connections int // connections given up because more were open than are followed
	Clock       int // how often the clock that stamps packets was set: back, or by months
	Cut         int // 1: the file ends in the middle of a packet
}
