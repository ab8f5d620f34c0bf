package capture

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"
)

// exchange are the packets of a request and its answer.
var exchange = handshake(
	tcp{at: 400, from: Client, seq: 100, ack: 500, payload: "GET"},
	tcp{at: 500, from: Server, seq: 500, ack: 103, payload: "200", flags: fin},
	tcp{at: 600, from: Client, seq: 103, ack: 504, flags: fin},
)

// heard is what is heard of exchange, without its first line.
const heard = "0 400 \"GET\"\n1 500 \"200\"\n1 500 close\n0 600 close\n600 end 0\n"

// links are the headers of link types, as the server's machine sees packets.
var links = map[string]struct {
	link   layers.LinkType
	header func(s tcp, v6 bool) []byte
	at     string // where packets were captured, if that is known from the header
}{
	"Ethernet": {layers.LinkTypeEthernet, func(_ tcp, v6 bool) []byte {
		return binary.BigEndian.AppendUint16(make([]byte, 12), etherType(v6))
	}, ""},
	"VLAN": {layers.LinkTypeEthernet, func(_ tcp, v6 bool) []byte {
		return binary.BigEndian.AppendUint16(append(make([]byte, 12), 0x81, 0, 0, 7), etherType(v6))
	}, ""},
	"two VLANs": {layers.LinkTypeEthernet, func(_ tcp, v6 bool) []byte {
		return binary.BigEndian.AppendUint16(append(make([]byte, 12), 0x88, 0xa8, 0, 7, 0x81, 0, 0, 7), etherType(v6))
	}, ""},
	"raw":     {layers.LinkTypeRaw, func(tcp, bool) []byte { return nil }, ""},
	"raw, 12": {12, func(tcp, bool) []byte { return nil }, ""},
	"loopback, little-endian": {layers.LinkTypeNull, func(_ tcp, v6 bool) []byte {
		return []byte{map[bool]byte{true: 30, false: 2}[v6], 0, 0, 0}
	}, ""},
	"loopback of OpenBSD": {layers.LinkTypeLoop, func(_ tcp, v6 bool) []byte {
		return []byte{0, 0, 0, map[bool]byte{true: 24, false: 2}[v6]}
	}, ""},
	"SLL": {layers.LinkTypeLinuxSLL, func(s tcp, v6 bool) []byte {
		return binary.BigEndian.AppendUint16([]byte{0, 4 * byte(s.from), 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}, etherType(v6))
	}, " at server"},
	"SLL2": {layers.LinkTypeLinuxSLL2, func(s tcp, v6 bool) []byte {
		return append(binary.BigEndian.AppendUint16(nil, etherType(v6)), 0, 0, 0, 0, 0, 2, 0, 1, 4*byte(s.from), 6, 0, 0, 0, 0, 0, 0, 0, 0)
	}, " at server"},
}

func etherType(v6 bool) uint16 {
	if v6 {
		return etherIPv6
	}
	return etherIPv4
}

// TestLinkTypes reads each link type with both versions of IP.
func TestLinkTypes(t *testing.T) {
	for name, l := range links {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, v6), func(t *testing.T) {
				var file bytes.Buffer
				w := pcapgo.NewWriter(&file)
				if err := w.WriteFileHeader(1<<18, l.link); err != nil {
					t.Fatal(err)
				}
				for _, s := range exchange {
					b := append(l.header(s, v6), s.ip(t, v6)...)
					if l.link == layers.LinkTypeEthernet { // short frames are padded
						b = append(b, make([]byte, max(0, 60-len(b)))...)
					}
					ci := gopacket.CaptureInfo{Timestamp: time.UnixMicro(s.at), CaptureLength: len(b), Length: len(b)}
					if err := w.WritePacket(ci, b); err != nil {
						t.Fatal(err)
					}
				}
				client, server := clientAddr, serverAddr
				if v6 {
					client, server = clientAddr6, serverAddr6
				}
				got, losses := hear(t, 8000, &file)
				want := fmt.Sprintf("%v %v whole rtt 200µs 20µs at server\n%s", netip.AddrPortFrom(client, 40000), netip.AddrPortFrom(server, 8000), heard)
				if got != want || losses != (Losses{}) {
					t.Errorf("heard\n%s\nwant\n%s\n%+v", got, want, losses)
				}
			})
		}
	}
}

// TestWhere checks what the direction of packets says about the place of the capture, if the handshake says nothing.
func TestWhere(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			w := pcapgo.NewWriter(&file)
			if err := w.WriteFileHeader(1<<18, l.link); err != nil {
				t.Fatal(err)
			}
			for _, s := range []tcp{
				{from: Server, seq: 499, ack: 100, flags: syn},
				{at: 1, from: Client, seq: 100, ack: 500, payload: "a"},
			} {
				b := append(l.header(s, false), s.ip(t, false)...)
				ci := gopacket.CaptureInfo{Timestamp: time.UnixMicro(s.at), CaptureLength: len(b), Length: len(b)}
				if err := w.WritePacket(ci, b); err != nil {
					t.Fatal(err)
				}
			}
			got, _ := hear(t, 8000, &file)
			want := fmt.Sprintf("10.0.0.1:40000 10.0.0.2:8000 whole%s\n0 1 \"a\"\n1 end 4\n", l.at)
			if got != want {
				t.Errorf("heard\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// swapped writes a pcap file by hand, in a byte order.
func swapped(t testing.TB, order binary.ByteOrder, nanos bool) *bytes.Buffer {
	magic, unit := uint32(0xa1b2c3d4), int64(1)
	if nanos {
		magic, unit = 0xa1b23c4d, 1000
	}
	var out bytes.Buffer
	write := func(v ...uint32) {
		for _, v := range v {
			_ = binary.Write(&out, order, v)
		}
	}
	write(magic)
	_ = binary.Write(&out, order, []uint16{2, 4})
	write(0, 0, 1<<18, 101)
	for _, s := range exchange {
		b := s.ip(t, false)
		write(0, uint32(s.at*unit), uint32(len(b)), uint32(len(b)))
		out.Write(b)
	}
	return &out
}

// ng writes a pcapng file by hand, in a byte order: two interfaces of other link types and units of time, blocks of other
// kinds, and numbers of dropped packets.
func ng(t testing.TB, order binary.AppendByteOrder) *bytes.Buffer {
	var out bytes.Buffer
	block := func(kind uint32, body ...byte) {
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
		b := order.AppendUint32(nil, kind)
		b = order.AppendUint32(b, uint32(len(body)+12))
		b = append(b, body...)
		out.Write(order.AppendUint32(b, uint32(len(body)+12)))
	}
	u16, u32 := order.AppendUint16, order.AppendUint32
	u64 := order.AppendUint64
	section := func() {
		block(blockSection, u64(u16(u16(u32(nil, 0x1a2b3c4d), 1), 0), 1<<64-1)...)
		block(blockInterface, append(u32(u16(u16(nil, 101), 0), 0), append(u16(u16(nil, 2), 3), "lo0\x00"...)...)...)
		binary10 := append(u16(u16(nil, 9), 1), 0x8a, 0, 0, 0) // units of 1/1024 s
		offset := u64(u16(u16(nil, 14), 8), 0)
		block(blockInterface, append(append(u32(u16(u16(nil, 1), 0), 0), binary10...), offset...)...)
		block(blockInterface, append(u32(u16(u16(nil, 101), 0), 0), append(u16(u16(nil, 9), 1), 9, 0, 0, 0)...)...)
	}
	section()
	block(4, bytes.Repeat([]byte{7}, 100<<10)...) // names
	for i, s := range exchange {
		b, iface, units := s.ip(t, false), uint32(0), uint64(s.at)
		switch i {
		case 3:
			section()
			iface, units = 2, units*1000
		case 4: // a packet of an interface with coarse times is of another port
			other := append(binary.BigEndian.AppendUint16(make([]byte, 12), etherIPv4), tcp{client: 1, payload: "?"}.ip(t, false)...)
			other[14+22], other[14+23] = 0, 2
			block(blockEnhanced, append(u32(u32(u32(u32(u32(nil, 1), 0), 0), uint32(len(other))), uint32(len(other))), other...)...)
		}
		body := u32(u32(u32(u32(u32(nil, iface), uint32(units>>32)), uint32(units)), uint32(len(b))), uint32(len(b)))
		block(blockEnhanced, append(body, b...)...)
		block(0x0bad, 1, 2, 3)
	}
	block(blockStats, append(u32(u32(u32(nil, 0), 0), 0), append(u64(u16(u16(nil, 5), 8), 5), u64(u16(u16(nil, 7), 8), 2)...)...)...)
	return &out
}

// TestFormats reads one exchange in each format of files.
func TestFormats(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(captureOf(t, exchange...).Bytes())
	_ = z.Close()
	for name, test := range map[string]struct {
		file    *bytes.Buffer
		dropped int
	}{
		"pcap, µs, little-endian": {swapped(t, binary.LittleEndian, false), 0},
		"pcap, ns, little-endian": {swapped(t, binary.LittleEndian, true), 0},
		"pcap, µs, big-endian":    {swapped(t, binary.BigEndian, false), 0},
		"pcap, ns, big-endian":    {swapped(t, binary.BigEndian, true), 0},
		"pcapng, little-endian":   {ng(t, binary.LittleEndian), 7},
		"pcapng, big-endian":      {ng(t, binary.BigEndian), 7},
		"gzip":                    {&zipped, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, losses := hear(t, 8000, test.file); got != opened+heard || losses != (Losses{Dropped: test.dropped}) {
				t.Errorf("heard\n%s\nwant\n%s\n%+v", got, opened+heard, losses)
			}
		})
	}
}

// TestCutOff reads files that end anywhere: what is whole counts, and that it was cut.
func TestCutOff(t *testing.T) {
	for name, file := range map[string][]byte{"pcap": swapped(t, binary.LittleEndian, false).Bytes(), "pcapng": ng(t, binary.BigEndian).Bytes()} {
		for n := range len(file) {
			if n > 500 && n < 100<<10 {
				continue // in the large block
			}
			src, err := OpenFile(bytes.NewReader(file[:n]))
			if err != nil {
				if !errors.Is(err, ErrFormat) {
					t.Fatalf("%s, %d bytes: %v", name, n, err)
				}
				continue
			}
			a := NewAssembler(Options{Port: 8000, Open: func(*Flow) Listener { return &log{} }})
			if err := a.Run(t.Context(), src); err != nil {
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
		}
	}
	file := captureOf(t, exchange...).Bytes()
	got, losses := hear(t, 8000, bytes.NewBuffer(file[:len(file)-1]))
	want := opened + "0 400 \"GET\"\n1 500 \"200\"\n1 500 close\n500 end 4\n"
	if got != want || losses != (Losses{Cut: 1}) {
		t.Errorf("heard\n%s\nwant\n%s\n%+v", got, want, losses)
	}
}

// TestNoCapture checks the errors of files that are not captures, or are damaged.
func TestNoCapture(t *testing.T) {
	for _, file := range []string{"", "x", "GET / HTTP/1.1\r\n\r\n", "\x1f\x8b", "\xd4\xc3\xb2\xa1"} {
		if _, err := OpenFile(bytes.NewBufferString(file)); err == nil {
			t.Errorf("no error for %q", file)
		} else {
			t.Log(err)
		}
	}
	file := captureOf(t, exchange...)
	file.WriteString("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\x7f\x00\x00\x00\x00")
	src, err := OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := NewAssembler(Options{Open: func(*Flow) Listener { return nil }}).Run(t.Context(), src); err == nil {
		t.Error("no error for an impossible packet")
	}
}

// TestOtherPackets checks how packets that are no segments of TCP are counted.
func TestOtherPackets(t *testing.T) {
	whole := exchange[3].ip(t, false)
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(whole)) }
	v6 := exchange[3].ip(t, true)
	extended := func(kind byte, header ...byte) []byte {
		b := bytes.Clone(v6[:40])
		b[6] = kind
		binary.BigEndian.PutUint16(b[4:], uint16(len(v6)-40+len(header)))
		return append(append(b, header...), v6[40:]...)
	}
	for name, test := range map[string]struct {
		link   uint32
		packet []byte
		want   Losses
		heard  bool
	}{
		"whole":              {linkRaw, whole, Losses{}, true},
		"length left to NIC": {linkRaw, change(func(b []byte) []byte { b[2], b[3] = 0, 0; return b }), Losses{}, true},
		"UDP":                {linkRaw, change(func(b []byte) []byte { b[9] = 17; return b }), Losses{}, false},
		"ARP":                {linkEthernet, append(make([]byte, 12), 8, 6, 0, 0), Losses{}, false},
		"first fragment":     {linkRaw, change(func(b []byte) []byte { b[6] = 0x20; return b }), Losses{Fragments: 1}, false},
		"later fragment":     {linkRaw, change(func(b []byte) []byte { b[7] = 1; return b }), Losses{Fragments: 1}, false},
		"link type":          {999, whole, Losses{Links: 1}, false},
		"header of IP":       {linkRaw, change(func(b []byte) []byte { b[0] = 0x41; return b }), Losses{Malformed: 1}, false},
		"header of TCP":      {linkRaw, change(func(b []byte) []byte { b[32] = 0x10; return b }), Losses{Malformed: 1}, false},
		"longer than packet": {linkRaw, change(func(b []byte) []byte { b[32] = 0xf0; return b[:40] }), Losses{Malformed: 1}, false},
		"short":              {linkRaw, whole[:30], Losses{Truncated: 1}, false},
		"empty":              {linkRaw, nil, Losses{Truncated: 1}, false},
		"IPv6":               {linkRaw, v6, Losses{}, true},
		"hop by hop":         {linkRaw, extended(0, 6, 0, 0, 0, 0, 0, 0, 0), Losses{}, true},
		"two headers":        {linkRaw, extended(0, 60, 0, 0, 0, 0, 0, 0, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), Losses{}, true},
		"authentication":     {linkRaw, extended(51, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), Losses{}, true},
		"atomic fragment":    {linkRaw, extended(44, 6, 0, 0, 0, 0, 0, 0, 0), Losses{}, true},
		"fragment of IPv6":   {linkRaw, extended(44, 6, 0, 0, 1, 0, 0, 0, 0), Losses{Fragments: 1}, false},
		"header too long":    {linkRaw, extended(0, 6, 200, 0, 0, 0, 0, 0, 0), Losses{Malformed: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			heard := false
			a := NewAssembler(Options{Port: 8000, Open: func(*Flow) Listener { heard = true; return nil }})
			a.frame(&frame{at: 1, link: test.link, length: len(test.packet), data: test.packet})
			if heard != test.heard || a.Losses() != test.want {
				t.Errorf("heard %v, want %v; %+v, want %+v", heard, test.heard, a.Losses(), test.want)
			}
		})
	}
}

// TestPipe checks that Run ends with its context while a pipe has nothing, and that what came before is delivered.
func TestPipe(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		_, _ = w.Write(captureOf(t, exchange[:4]...).Bytes())
	}()
	src, err := OpenFile(r)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	ctx, cancel := context.WithCancel(t.Context())
	l := &telling{done: cancel}
	if err := NewAssembler(Options{Port: 8000, Open: func(*Flow) Listener { return l }}).Run(ctx, src); err != nil {
		t.Fatal(err)
	}
	if want := "0 400 \"GET\"\n400 end 4\n"; l.String() != want {
		t.Errorf("heard %q, want %q", l, want)
	}
}

// telling calls done at the first bytes.
type telling struct {
	log
	done func()
}

func (l *telling) Data(from Side, at time.Time, b []byte) {
	l.log.Data(from, at, b)
	l.done()
}

// TestStamps reads pcapng files of interfaces with any units of time and offsets: each stamp is right to its unit, packets with
// coarse ones are left out, and a file that is cut off anywhere, compressed or not, gives the packets before that.
func TestStamps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var order binary.AppendByteOrder = binary.LittleEndian
		if rapid.Bool().Draw(t, "big-endian") {
			order = binary.BigEndian
		}
		u16, u32, u64 := order.AppendUint16, order.AppendUint32, order.AppendUint64
		var out []byte
		block := func(kind uint32, body []byte) {
			body = append(body, make([]byte, -len(body)&3)...)
			size := uint32(len(body) + 12)
			out = u32(append(u32(u32(out, kind), size), body...), size)
		}
		block(blockSection, u64(u16(u16(u32(nil, 0x1a2b3c4d), 1), 0), 1<<64-1))
		type unit struct {
			perSecond *big.Int
			offset    int64
		}
		units := make([]unit, rapid.IntRange(1, 4).Draw(t, "interfaces"))
		for i := range units {
			exponent := rapid.IntRange(0, 15).Draw(t, "exponent")
			u := &units[i]
			u.perSecond = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
			code := byte(exponent)
			if rapid.Bool().Draw(t, "power of 2") {
				exponent *= 3
				u.perSecond, code = new(big.Int).Lsh(big.NewInt(1), uint(exponent)), 0x80|byte(exponent)
			}
			u.offset = rapid.SampledFrom([]int64{0, 1_699_999_000}).Draw(t, "offset")
			if exponent > 9 {
				u.offset = 1_699_999_999 // else the time needs more than 64 bits
			}
			resolution := append(u16(u16(nil, 9), 1), code, 0, 0, 0)
			block(blockInterface, append(append(u32(u16(u16(nil, linkRaw), 0), 0), resolution...), u64(u16(u16(nil, 14), 8), uint64(u.offset))...))
		}
		type stamp struct{ at, unit int64 }
		var want []stamp
		var ends []int
		for range rapid.IntRange(1, 20).Draw(t, "packets") {
			n := rapid.IntRange(0, len(units)-1).Draw(t, "interface")
			at := 1_700_000_000*int64(time.Second) + rapid.Int64Range(0, int64(time.Hour)).Draw(t, "at")
			since := big.NewInt(at - units[n].offset*int64(time.Second))
			count := since.Div(since.Mul(since, units[n].perSecond), big.NewInt(int64(time.Second))).Uint64()
			block(blockEnhanced, append(u32(u32(u32(u32(u32(nil, uint32(n)), uint32(count>>32)), uint32(count)), 4), 4), 1, 2, 3, 4))
			per := new(big.Int).Div(big.NewInt(int64(time.Second)), units[n].perSecond).Int64()
			if units[n].perSecond.Cmp(big.NewInt(minUnits)) >= 0 {
				want, ends = append(want, stamp{at, per + 1}), append(ends, len(out))
			}
		}
		read := func(file []byte) (got []int64) {
			src, err := OpenFile(bytes.NewReader(file))
			if err != nil {
				return nil // cut off in its header
			}
			defer src.Close()
			for {
				var f frame
				if err = src.packets.read(&f); errors.Is(err, errIdle) {
					continue
				}
				if err != nil {
					return got
				}
				got = append(got, f.at)
			}
		}
		check := func(got []int64, least int) {
			if len(got) < least || len(got) > len(want) {
				t.Fatalf("%d packets, want at least %d of %d", len(got), least, len(want))
			}
			for i, at := range got {
				if d := want[i].at - at; d < 0 || d > want[i].unit {
					t.Fatalf("packet %d is stamped %d, want %d", i, at, want[i].at)
				}
			}
		}
		check(read(out), len(want))
		cut := rapid.IntRange(0, len(out)).Draw(t, "cut")
		whole, _ := slices.BinarySearch(ends, cut+1)
		if got := read(out[:cut]); len(got) != whole {
			t.Fatalf("%d packets of a file cut off at %d, want %d", len(got), cut, whole)
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write(out)
		_ = z.Close()
		check(read(zipped.Bytes()), len(want))
		check(read(zipped.Bytes()[:rapid.IntRange(0, zipped.Len()).Draw(t, "cut of gzip")]), 0)
	})
}
