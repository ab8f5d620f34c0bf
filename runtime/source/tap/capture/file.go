package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxPacket is the maximum size of a packet, or of a block of a pcapng file that is read.
const maxPacket = 1 << 20

// pipeLag is how long tcpdump keeps packets at most before it writes them to a pipe, and some more.
const pipeLag = 1500 * time.Millisecond

// ErrFormat says that a file is not a capture of packets.
var ErrFormat = errors.New("no capture of packets")

// errCut says that a file ends in the middle of a packet.
var errCut = errors.New("the capture is cut off")

// file reads packets of a capture file. Its methods can be called again after errIdle.
type file struct {
	r       *bufio.Reader
	order   binary.ByteOrder
	next    func(*frame) (bool, error) // reads a packet or a block, and reports whether it was a packet
	used    int                        // size of the current one, to be skipped before the next
	bad     int                        // blocks that make no sense
	link    uint32                     // pcap: link type
	scale   int64                      // pcap: nanoseconds of a unit of the fraction of a second
	ifaces  []iface                    // pcapng: interfaces of the section
	dropped int                        // pcapng: packets dropped in earlier sections
}

// iface is an interface of a pcapng file.
type iface struct {
	link   uint32
	offset int64     // seconds to add to times
	units  uint64    // units of time a second; 0: not usable
	drops  [2]uint64 // packets dropped, by the interface and by the system
}

// OpenFile returns the packets of a capture file, or of a pipe, in the formats pcap and pcapng, or one of them in gzip.
// It waits for the header of the file. The caller closes r after Run; if r is a pipe that blocks, a goroutine stays in
// its Read.
func OpenFile(r io.Reader) (*Source, error) {
	p := newPump(r)
	f := &file{r: bufio.NewReaderSize(p, maxPacket+64)}
	err := f.begin()
	for errors.Is(err, errIdle) {
		err = f.begin()
	}
	if errors.Is(err, errCut) {
		err = fmt.Errorf("read capture: %w: it ends in its header", ErrFormat)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return &Source{packets: f, pump: p, lag: pipeLag}, nil
}

// begin reads the header of the file.
func (f *file) begin() error {
	b, err := f.r.Peek(4)
	switch {
	case len(b) == 0 && errors.Is(err, io.EOF):
		return fmt.Errorf("read capture: %w: it is empty", ErrFormat)
	case err != nil:
		return f.failed(cut(err))
	}
	magic := binary.LittleEndian.Uint32(b)
	switch magic {
	case blockSection:
		f.next = f.block
		return nil
	case 0xa1b2c3d4, 0xa1b23c4d:
		f.order = binary.LittleEndian
	case 0xd4c3b2a1, 0x4d3cb2a1:
		f.order = binary.BigEndian
	default:
		return fmt.Errorf("read capture: %w: write one with tcpdump -w, or with Wireshark", ErrFormat)
	}
	if b, err = f.r.Peek(24); err != nil {
		return f.failed(cut(err))
	}
	f.scale = int64(time.Microsecond)
	if f.order.Uint32(b) == 0xa1b23c4d {
		f.scale = 1
	}
	f.link = f.order.Uint32(b[20:]) & 0x0fffffff // the rest says whether frames end with a checksum
	f.next, f.used = f.packet, 24
	return nil
}

// failed adds to an error of reading what failed.
func (f *file) failed(err error) error {
	if errors.Is(err, errIdle) || errors.Is(err, errCut) {
		return err
	}
	return fmt.Errorf("read capture: %w", err)
}

// read reads the next packet. It returns io.EOF at the end, errCut if that is in the middle of a packet, and errIdle if
// nothing has come for a while.
func (f *file) read(p *frame) error {
	for {
		for f.used > 0 {
			n, err := f.r.Discard(f.used)
			f.used -= n
			if err != nil {
				return f.failed(cut(err))
			}
		}
		found, err := f.next(p)
		if err != nil || found {
			return err
		}
	}
}

// cut returns errCut for the end of a file at a place where more must follow.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// peek returns the next n bytes without skipping them. The file may end before the first.
func (f *file) peek(n int) ([]byte, error) {
	b, err := f.r.Peek(n)
	if err == nil {
		return b, nil
	}
	if len(b) > 0 || !errors.Is(err, io.EOF) {
		err = f.failed(cut(err))
	}
	return nil, err
}

// packet reads a packet of a pcap file.
func (f *file) packet(p *frame) (bool, error) {
	b, err := f.peek(16)
	if err != nil {
		return false, err
	}
	n := f.order.Uint32(b[8:])
	if n > maxPacket {
		return false, fmt.Errorf("read capture: a packet of %d bytes: the file is damaged", n)
	}
	if b, err = f.peek(16 + int(n)); err != nil {
		return false, err
	}
	*p = frame{
		at:   int64(f.order.Uint32(b))*int64(time.Second) + int64(f.order.Uint32(b[4:]))*f.scale,
		link: f.link, length: int(max(f.order.Uint32(b[12:]), n)), data: b[16:],
	}
	f.used = len(b)
	return true, nil
}
