package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Blocks of a pcapng file.
const (
	blockSection   = 0x0a0d0d0a // palindromic, so that it is the same in both byte orders
	blockInterface = 1
	blockPacket    = 2 // obsolete
	blockSimple    = 3 // without a time: useless here, and counted as malformed
	blockStats     = 5
	blockEnhanced  = 6
)

// minUnits is the fewest units of time a second that packets can be timed by.
const minUnits = 1000

// maxInterfaces is the maximum number of interfaces of a section.
const maxInterfaces = 4096

// block reads a block of a pcapng file, and reports whether it was a packet.
func (f *file) block(p *frame) (bool, error) {
	b, err := f.peek(12)
	if err != nil {
		return false, err
	}
	if binary.LittleEndian.Uint32(b) == blockSection {
		switch uint32(0x1a2b3c4d) {
		case binary.LittleEndian.Uint32(b[8:]):
			f.order = binary.LittleEndian
		case binary.BigEndian.Uint32(b[8:]):
			f.order = binary.BigEndian
		default:
			return false, errors.New("read capture: a section of unknown byte order: the file is damaged")
		}
		f.dropped = f.drops()
		f.ifaces = f.ifaces[:0]
	}
	kind, size := f.order.Uint32(b), f.order.Uint32(b[4:])
	if size < 12 || size%4 != 0 || size > 1<<30 {
		return false, fmt.Errorf("read capture: a block of %d bytes: the file is damaged", size)
	}
	switch kind {
	case blockInterface, blockPacket, blockSimple, blockEnhanced, blockStats:
		if size > maxPacket+64 {
			f.bad++
			break
		}
		if b, err = f.peek(int(size)); err != nil {
			return false, err
		}
		f.used = int(size)
		return f.body(p, kind, b[8:size-4]), nil
	}
	f.used = int(size)
	return false, nil
}

// body reads the body of a block, and reports whether it was a packet.
func (f *file) body(p *frame, kind uint32, b []byte) bool {
	switch {
	case kind == blockInterface && len(b) >= 8:
		f.addInterface(b)
		return false
	case kind == blockStats && len(b) >= 12:
		f.stats(b)
		return false
	case (kind == blockEnhanced || kind == blockPacket) && len(b) >= 20:
		n := f.order.Uint32(b)
		if kind == blockPacket {
			n = uint32(f.order.Uint16(b))
		}
		size := f.order.Uint32(b[12:])
		if int64(n) >= int64(len(f.ifaces)) || int64(size) > int64(len(b)-20) {
			break
		}
		i := &f.ifaces[n]
		at, ok := i.time(uint64(f.order.Uint32(b[4:]))<<32 | uint64(f.order.Uint32(b[8:])))
		if !ok {
			break
		}
		*p = frame{at: at, link: i.link, length: int(max(f.order.Uint32(b[16:]), size)), data: b[20 : 20+size]}
		if len(f.ifaces) > 1 { // their packets may come in batches of each
			p.disorder = maxWait
		}
		return true
	}
	f.bad++
	return false
}

// addInterface reads the description of an interface.
func (f *file) addInterface(b []byte) {
	i := iface{link: uint32(f.order.Uint16(b)), units: 1_000_000}
	f.options(b[8:], func(code uint16, v []byte) {
		switch {
		case code == 9 && len(v) >= 1: // if_tsresol: a negative power of 10, or of 2
			base, exponent := uint64(10), v[0]
			if exponent&0x80 != 0 {
				base, exponent = 2, exponent&0x7f
			}
			i.units = 1
			for range exponent {
				if i.units > (1<<63)/base {
					i.units = 0 // finer than a time can say
					break
				}
				i.units *= base
			}
			if i.units < minUnits {
				i.units = 0
			}
		case code == 14 && len(v) >= 8: // if_tsoffset: seconds
			i.offset = int64(f.order.Uint64(v))
		}
	})
	if len(f.ifaces) < maxInterfaces {
		f.ifaces = append(f.ifaces, i)
	}
}

// stats adds up the packets that were dropped when the file was written.
func (f *file) stats(b []byte) {
	n := f.order.Uint32(b)
	f.options(b[12:], func(code uint16, v []byte) {
		if (code == 5 || code == 7) && len(v) >= 8 && int64(n) < int64(len(f.ifaces)) { // isb_ifdrop, isb_osdrop: totals so far
			f.ifaces[n].drops[(code-5)/2] = f.order.Uint64(v)
		}
	})
}

// options calls each with the code and value of every option.
func (f *file) options(b []byte, each func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := f.order.Uint16(b), int(f.order.Uint16(b[2:]))
		if b = b[4:]; code == 0 || n > len(b) {
			return
		}
		each(code, b[:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// time returns the Unix time in nanoseconds of a packet. It is false if it is out of range.
func (i *iface) time(units uint64) (int64, bool) {
	if i.units == 0 {
		return 0, false
	}
	s, rest := units/i.units, units%i.units
	sec := int64(s) + i.offset
	if s > 1<<33 || sec < 0 || sec > 1<<33 {
		return 0, false
	}
	high, low := bits.Mul64(rest, uint64(time.Second))
	nanos, _ := bits.Div64(high, low, i.units)
	return sec*int64(time.Second) + int64(nanos), true
}

// drops returns the number of packets that were dropped when the file was written, as far as it says so.
func (f *file) drops() int {
	n := f.dropped
	for _, i := range f.ifaces {
		for _, d := range i.drops {
			n += int(min(d, 1<<40))
		}
	}
	return n
}
