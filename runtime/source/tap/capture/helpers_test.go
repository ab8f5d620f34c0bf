package capture

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// log is a listener that writes down what it hears, in microseconds.
type log struct{ bytes.Buffer }

func (l *log) Data(from Side, at time.Time, b []byte) {
	fmt.Fprintf(l, "%d %d %q\n", from, at.UnixMicro(), b)
}

func (l *log) Gap(from Side, at time.Time, n int) {
	fmt.Fprintf(l, "%d %d gap %d\n", from, at.UnixMicro(), n)
}

func (l *log) Close(from Side, at time.Time) { fmt.Fprintf(l, "%d %d close\n", from, at.UnixMicro()) }
func (l *log) End(at time.Time, why Ending)  { fmt.Fprintf(l, "%d end %d\n", at.UnixMicro(), why) }

// tcp is a segment of a test.
type tcp struct {
	at       int64 // µs
	from     Side
	seq, ack uint32
	flags    uint8
	payload  string
	client   uint16 // port, 0: 40000
	cut      int    // bytes that the capture lacks
	inside   bool   // behind a translation of addresses
}

// The ends of the connections of tests.
var (
	clientAddr, serverAddr   = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	clientAddr6, serverAddr6 = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
)

// ip returns a segment from IP on, written by gopacket.
func (s tcp) ip(t interface{ Fatal(...any) }, v6 bool) []byte {
	port := layers.TCPPort(s.client)
	if port == 0 {
		port = 40000
	}
	l := &layers.TCP{
		SrcPort: port, DstPort: 8000, Seq: s.seq, Ack: s.ack, Window: 500,
		SYN: s.flags&flagSYN != 0, FIN: s.flags&flagFIN != 0, RST: s.flags&flagRST != 0, ACK: s.ack != 0 || s.flags&flagACK != 0,
		Options: []layers.TCPOption{{OptionType: layers.TCPOptionKindNop}},
	}
	src, dst := clientAddr, serverAddr
	if v6 {
		src, dst = clientAddr6, serverAddr6
	}
	if s.inside {
		dst = netip.MustParseAddr("172.17.0.2")
	}
	if s.from == Server {
		src, dst, l.SrcPort, l.DstPort = dst, src, l.DstPort, l.SrcPort
	}
	b := gopacket.NewSerializeBuffer()
	var err error
	if options := (gopacket.SerializeOptions{FixLengths: true}); v6 {
		ip := &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolTCP, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
		err = gopacket.SerializeLayers(b, options, ip, l, gopacket.Payload(s.payload))
	} else {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
		err = gopacket.SerializeLayers(b, options, ip, l, gopacket.Payload(s.payload))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// captureOf returns a capture file of segments as raw IP.
func captureOf(t testing.TB, segments ...tcp) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := pcapgo.NewWriterNanos(&out)
	if err := w.WriteFileHeader(1<<20, layers.LinkTypeRaw); err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		b := s.ip(t, false)
		ci := gopacket.CaptureInfo{Timestamp: time.UnixMicro(s.at), CaptureLength: len(b) - s.cut, Length: len(b)}
		if err := w.WritePacket(ci, b[:ci.CaptureLength]); err != nil {
			t.Fatal(err)
		}
	}
	return &out
}

// hear reads a capture and returns what the listeners of its connections hear.
func hear(t testing.TB, port uint16, file *bytes.Buffer) (string, Losses) {
	t.Helper()
	src, err := OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var l log
	a := NewAssembler(Options{Port: port, Open: func(f *Flow) Listener {
		fmt.Fprintf(&l, "%v %v", f.Client, f.Server)
		if f.Whole {
			fmt.Fprintf(&l, " whole")
		}
		if f.RTT != 0 || f.ServerRTT != 0 {
			fmt.Fprintf(&l, " rtt %v %v", f.RTT, f.ServerRTT)
		}
		if f.AtClient {
			fmt.Fprintf(&l, " at client")
		}
		if f.AtServer {
			fmt.Fprintf(&l, " at server")
		}
		fmt.Fprintln(&l)
		return &l
	}, Wound: func(at time.Time) { fmt.Fprintf(&l, "wound %d\n", at.UnixMicro()) }})
	if err := a.Run(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if a.held != 0 || a.slow.n != 0 || a.fast.n != 0 || a.open.n != 0 || len(a.conns) != 0 {
		t.Errorf("left at the end: %d bytes, %d and %d sides that wait, %d connections", a.held, a.slow.n, a.fast.n, a.open.n)
	}
	return l.String(), a.Losses()
}
