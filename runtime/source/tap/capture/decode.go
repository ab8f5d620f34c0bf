package capture

import (
	"encoding/binary"
	"net/netip"
)

// Link types, as in capture files.
const (
	linkNull     = 0   // BSD loopback: the address family, in the byte order of the machine that captured
	linkEthernet = 1   // Ethernet, with or without VLAN tags
	linkRawBSD   = 12  // IP, as some systems number it
	linkRawOpen  = 14  // IP, as OpenBSD numbers it
	linkRaw      = 101 // IP
	linkLoop     = 108 // OpenBSD's loopback: the address family in network byte order
	linkSLL      = 113 // Linux, any interface
	linkIPv4     = 228 // IPv4
	linkIPv6     = 229 // IPv6
	linkSLL2     = 276 // Linux, any interface, with its number
)

// frame is a packet as captured.
type frame struct {
	at     int64  // Unix time in nanoseconds
	link   uint32 // link type
	length int    // length on the wire, of which data is the beginning
	data   []byte // valid until the next frame is read
	// disorder is how many ns times may go back without the clock being set; 0: maxDisorder.
	disorder int64
}

// direction says how the capturing machine saw a packet.
type direction uint8

const (
	unknownDirection direction = iota
	incoming
	outgoing
)

// packet is a decoded TCP segment.
type packet struct {
	at       int64
	disorder int64 // see frame
	src, dst netip.AddrPort
	seq, ack uint32
	flags    uint8
	dir      direction
	payload  []byte
	missing  int // bytes of the payload after those, which the capture lacks
}

// Flags of TCP.
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	_
	flagACK
)

// outcome says why a frame has no segment.
type outcome uint8

const (
	decoded     outcome = iota
	other               // another protocol
	fragment            // a part of an IP packet
	malformed           // impossible headers
	short               // the capture lacks a part of the headers
	unknownLink         // an unsupported link type
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
)

// decode reads the headers of a frame into p, whose slices point into the frame.
func (p *packet) decode(f *frame) outcome {
	*p = packet{at: f.at, disorder: f.disorder}
	b, kind := f.data, uint16(0)
	switch f.link {
	case linkEthernet:
		if len(b) < 14 {
			return short
		}
		kind, b = be16(b[12:]), b[14:]
	case linkSLL:
		if len(b) < 16 {
			return short
		}
		p.dir = packetType(be16(b))
		kind, b = be16(b[14:]), b[16:]
	case linkSLL2:
		if len(b) < 20 {
			return short
		}
		p.dir = packetType(uint16(b[10]))
		kind, b = be16(b), b[20:]
	case linkNull, linkLoop:
		if len(b) < 4 {
			return short
		}
		b = b[4:] // the version of IP says the same as the address family, in one byte order
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
	default:
		return unknownLink
	}
	for kind == 0x8100 || kind == 0x88a8 || kind == 0x9100 { // VLAN tags
		if len(b) < 4 {
			return short
		}
		kind, b = be16(b[2:]), b[4:]
	}
	if kind != 0 && kind != etherIPv4 && kind != etherIPv6 {
		return other
	}
	return p.decodeIP(b, f.length-(len(f.data)-len(b)))
}

// packetType returns the direction of a packet by its type in Linux's link headers.
func packetType(n uint16) direction {
	switch n {
	case 4:
		return outgoing
	case 0:
		return incoming
	}
	return unknownDirection
}

// decodeIP reads an IP packet of which b is the captured beginning. wire is its length with padding.
func (p *packet) decodeIP(b []byte, wire int) outcome {
	if len(b) == 0 {
		return short
	}
	switch b[0] >> 4 {
	case 4:
		return p.decodeIPv4(b, wire)
	case 6:
		return p.decodeIPv6(b, wire)
	}
	return other
}

func (p *packet) decodeIPv4(b []byte, wire int) outcome {
	if len(b) < 20 {
		return short
	}
	header, total := int(b[0]&15)*4, int(be16(b[2:]))
	if total == 0 { // larger than 64 KiB, or left to the network card
		total = wire
	}
	if header < 20 || total < header {
		return malformed
	}
	if b[9] != protocolTCP {
		return other
	}
	if be16(b[6:])&0x3fff != 0 { // more fragments, or not the first
		return fragment
	}
	if len(b) < header {
		return short
	}
	src, dst := netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	return p.decodeTCP(b[header:min(total, len(b))], total-header, src, dst)
}

const (
	protocolHopByHop = 0
	protocolTCP      = 6
	protocolRouting  = 43
	protocolFragment = 44
	protocolAuth     = 51
	protocolOptions  = 60
)

func (p *packet) decodeIPv6(b []byte, wire int) outcome {
	if len(b) < 40 {
		return short
	}
	total := 40 + int(be16(b[4:]))
	if total == 40 { // larger than 64 KiB
		total = wire
	}
	src, dst := netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	next, rest, left := b[6], b[40:min(max(total, 40), len(b))], total-40
	for {
		size := 0
		switch next {
		case protocolTCP:
			return p.decodeTCP(rest, left, src.Unmap(), dst.Unmap())
		case protocolHopByHop, protocolRouting, protocolOptions:
			size = 8
		case protocolAuth:
			size = 4
		case protocolFragment:
			if len(rest) < 8 {
				return short
			}
			if be16(rest[2:])&0xfff9 != 0 {
				if rest[0] != protocolTCP {
					return other
				}
				return fragment
			}
			next, rest, left = rest[0], rest[8:], left-8
			continue
		default:
			return other
		}
		if len(rest) < 8 {
			return short
		}
		if size == 8 {
			size = 8 * (int(rest[1]) + 1)
		} else {
			size = 4 * (int(rest[1]) + 2)
		}
		if size > left {
			return malformed
		}
		if size > len(rest) {
			return short
		}
		next, rest, left = rest[0], rest[size:], left-size
	}
}

// decodeTCP reads a segment of which b is the captured beginning. length is the whole one's.
func (p *packet) decodeTCP(b []byte, length int, src, dst netip.Addr) outcome {
	if length < 20 {
		return malformed
	}
	if len(b) < 20 {
		return short
	}
	header := int(b[12]>>4) * 4
	if header < 20 || header > length {
		return malformed
	}
	p.src = netip.AddrPortFrom(src, be16(b))
	p.dst = netip.AddrPortFrom(dst, be16(b[2:]))
	p.seq, p.ack, p.flags = be32(b[4:]), be32(b[8:]), b[13]
	p.payload = b[min(header, len(b)):]
	p.missing = length - header - len(p.payload)
	return decoded
}

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
