package capture

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gopacket/gopacket/afpacket"
	"golang.org/x/net/bpf"
)

// The ring that the kernel writes packets to: 32 MiB. A block is handed over when it is full or blockTimeout old. As long
// passes between two looks at an empty ring.
const (
	ringBlocks   = 32
	blockSize    = 1 << 20
	blockTimeout = 50 * time.Millisecond
)

// live reads packets from a ring.
type live struct {
	ring *afpacket.TPacket
}

// OpenLive returns the packets of a TCP port on all interfaces of this machine, from now on. It needs root, or
// CAP_NET_RAW. Nothing is read before Run, so that the caller can drop its privileges in between.
func OpenLive(port uint16) (*Source, error) {
	loopback, local, err := interfaces()
	if err != nil {
		return nil, err
	}
	ring, err := afpacket.NewTPacket(
		afpacket.SocketDgram, // without link header: the same on every kind of interface, with and without VLAN
		afpacket.TPacketVersion3,
		afpacket.OptBlockSize(blockSize), afpacket.OptNumBlocks(ringBlocks),
		afpacket.OptBlockTimeout(blockTimeout), afpacket.OptPollTimeout(0),
	)
	if err != nil { // fs.ErrPermission among them
		return nil, fmt.Errorf("capture packets: %w", err)
	}
	if err := setFilter(ring, filter(port, loopback)); err != nil {
		ring.Close()
		return nil, fmt.Errorf("filter packets: %w", err)
	}
	return &Source{packets: live{ring}, local: local, close: func() error { ring.Close(); return nil }}, nil
}

// setFilter sets the filter of a ring: the extended one that knows handshakes, or, without the right to load that, the
// classic one.
func setFilter(ring *afpacket.TPacket, f []bpf.Instruction) error {
	if program, err := extend(f); err == nil {
		defer program.Close()
		if ring.SetEBPF(int32(program.FD())) == nil {
			return nil
		}
	}
	classic, err := bpf.Assemble(resolve(f))
	if err != nil {
		return err
	}
	return ring.SetBPF(classic)
}

// interfaces returns the index of the loopback interface, and the addresses of all.
func interfaces() (loopback uint32, local map[netip.Addr]bool, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return 0, nil, fmt.Errorf("list network interfaces: %w", err)
	}
	local = map[netip.Addr]bool{}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			loopback = uint32(i.Index)
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it is gone
		}
		for _, addr := range addrs {
			if p, err := netip.ParsePrefix(addr.String()); err == nil {
				local[p.Addr().Unmap().WithZone("")] = true
			}
		}
	}
	return loopback, local, nil
}

func (l live) read(f *frame) error {
	b, ci, err := l.ring.ZeroCopyReadPacketData()
	if err != nil {
		if errors.Is(err, afpacket.ErrTimeout) {
			time.Sleep(blockTimeout) // to wait in poll would keep a thread of Go's runtime awake too
			return errIdle
		}
		return fmt.Errorf("capture packets: %w", err)
	}
	*f = frame{at: ci.Timestamp.UnixNano(), link: linkRaw, length: ci.Length, data: b}
	return nil
}

func (l live) drops() int {
	if _, s, err := l.ring.SocketStats(); err == nil {
		return int(s.Drops())
	}
	return 0
}
