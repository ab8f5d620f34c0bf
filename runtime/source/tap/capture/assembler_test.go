package capture

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const (
	syn = flagSYN
	fin = flagFIN
	rst = flagRST
)

// handshake opens the connection of a test at 100, 200 and 300 µs. Its bytes begin at 100 and 500.
func handshake(rest ...tcp) []tcp {
	return append([]tcp{
		{at: 100, from: Client, seq: 99, flags: syn},
		{at: 120, from: Server, seq: 499, ack: 100, flags: syn},
		{at: 300, from: Client, seq: 100, ack: 500},
	}, rest...)
}

// opened is what is heard of handshake.
const opened = "10.0.0.1:40000 10.0.0.2:8000 whole rtt 200µs 20µs at server\n"

// TestAssembler checks what a listener hears of each thing that happens to packets.
func TestAssembler(t *testing.T) {
	const ms = 1000
	tests := []struct {
		name     string
		segments []tcp
		want     string
		losses   Losses
	}{
		{"in order", handshake(
			tcp{at: 400, from: Client, seq: 100, ack: 500, payload: "GET "},
			tcp{at: 500, from: Client, seq: 104, ack: 500, payload: "/"},
			tcp{at: 600, from: Server, seq: 500, ack: 105, payload: "HTTP/1.1", flags: fin},
			tcp{at: 700, from: Client, seq: 105, ack: 509, flags: fin},
			tcp{at: 800, from: Server, seq: 509, ack: 106},
		), opened + "0 400 \"GET \"\n0 500 \"/\"\n1 600 \"HTTP/1.1\"\n1 600 close\n0 700 close\n700 end 0\n", Losses{}},

		{"every packet twice", handshake(
			tcp{at: 101, from: Client, seq: 99, flags: syn},
			tcp{at: 121, from: Server, seq: 499, ack: 100, flags: syn},
			tcp{at: 400, from: Client, seq: 100, ack: 500, payload: "GET "},
			tcp{at: 401, from: Client, seq: 100, ack: 500, payload: "GET "},
			tcp{at: 600, from: Server, seq: 500, ack: 104, payload: "ok", flags: fin},
			tcp{at: 601, from: Server, seq: 500, ack: 104, payload: "ok", flags: fin},
			tcp{at: 700, from: Client, seq: 104, ack: 503, flags: fin},
			tcp{at: 701, from: Client, seq: 104, ack: 503, flags: fin},
			tcp{at: 702, from: Client, seq: 100, ack: 503, payload: "GET "},
		), opened + "0 400 \"GET \"\n1 600 \"ok\"\n1 600 close\n0 700 close\n700 end 0\n", Losses{}},

		{"SYN sent again: times of the handshake are ambiguous", []tcp{
			{at: 100, from: Client, seq: 99, flags: syn},
			{at: 1000 * ms, from: Client, seq: 99, flags: syn},
			{at: 1001 * ms, from: Server, seq: 499, ack: 100, flags: syn},
			{at: 1002 * ms, from: Client, seq: 100, ack: 500},
			{at: 1003 * ms, from: Client, seq: 100, ack: 500, payload: "x"},
		}, "10.0.0.1:40000 10.0.0.2:8000 whole\n0 1003000 \"x\"\n1003000 end 4\n", Losses{}},

		{"reordered: delivered when the hole is filled", handshake(
			tcp{at: 400, from: Server, seq: 504, payload: "late"},
			tcp{at: 450, from: Server, seq: 502, payload: "23"},
			tcp{at: 500, from: Server, seq: 500, payload: "01"},
		), opened + "1 500 \"01\"\n1 500 \"23\"\n1 500 \"late\"\n500 end 4\n", Losses{}},

		{"overlaps: the first bytes count", handshake(
			tcp{at: 400, from: Client, seq: 100, payload: "abcd"},
			tcp{at: 500, from: Client, seq: 102, payload: "XXef"},
			tcp{at: 600, from: Client, seq: 99, payload: "?????"},
			tcp{at: 700, from: Client, seq: 100, payload: "abcdefgh"},
		), opened + "0 400 \"abcd\"\n0 500 \"ef\"\n0 700 \"gh\"\n700 end 4\n", Losses{}},

		{"a lost segment that the other end has", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 600, from: Server, seq: 505, payload: "fg"},
			tcp{at: 700, from: Client, seq: 100, ack: 507},
			tcp{at: 20 * ms, from: Client, seq: 100, ack: 507, payload: "x"},
		), opened + "1 400 \"ab\"\n1 600 gap 3\n1 600 \"fg\"\n0 20000 \"x\"\n20000 end 4\n", Losses{Gaps: 1, Bytes: 3}},

		{"what the other end sends after a lost segment comes after what follows that", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 600, from: Server, seq: 505, payload: "fg"},
			tcp{at: 700, from: Client, seq: 100, ack: 507, payload: "x"},
		), opened + "1 400 \"ab\"\n1 600 gap 3\n1 600 \"fg\"\n0 700 \"x\"\n700 end 4\n", Losses{Gaps: 1, Bytes: 3}},

		{"the last segment of the client lost, acknowledged", handshake(
			tcp{at: 400, from: Client, seq: 100, payload: "ab"},
			tcp{at: 700, from: Server, seq: 500, ack: 107, payload: "x"},
		), opened + "0 400 \"ab\"\n0 700 gap 5\n1 700 \"x\"\n700 end 4\n", Losses{Gaps: 1, Bytes: 5}},

		{"the last segment lost, acknowledged", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 700, from: Client, seq: 100, ack: 507, payload: "x"},
			tcp{at: 20 * ms, from: Client, seq: 101, ack: 507, payload: "y"},
		), opened + "1 400 \"ab\"\n0 700 \"x\"\n1 700 gap 5\n0 20000 \"y\"\n20000 end 4\n", Losses{Gaps: 1, Bytes: 5}},

		{"acknowledged a little before it was captured", handshake(
			tcp{at: 700, from: Client, seq: 100, ack: 502},
			tcp{at: 750, from: Server, seq: 500, payload: "ab"},
		), opened + "1 750 \"ab\"\n750 end 4\n", Losses{}},

		{"a lost segment without acknowledgements: a second", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 600, from: Server, seq: 505, payload: "fg"},
			tcp{at: 900 * ms, from: Server, seq: 507, payload: "h"},
			tcp{at: 1100 * ms, from: Server, seq: 508, payload: "i"},
			tcp{at: 1200 * ms, from: Server, seq: 502, payload: "cde"},
		), opened + "1 400 \"ab\"\n1 600 gap 3\n1 600 \"fg\"\n1 900000 \"h\"\n1 1100000 \"i\"\n1200000 end 4\n", Losses{Gaps: 1, Bytes: 3}},

		{"sent again within the second", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 600, from: Server, seq: 505, payload: "fg"},
			tcp{at: 900 * ms, from: Server, seq: 502, payload: "cde"},
		), opened + "1 400 \"ab\"\n1 900000 \"cde\"\n1 900000 \"fg\"\n900000 end 4\n", Losses{}},

		{"truncated by the snap length", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "abcdef", cut: 4},
			tcp{at: 500, from: Server, seq: 506, payload: "g"},
		), opened + "1 400 \"ab\"\n1 400 gap 4\n1 500 \"g\"\n500 end 4\n", Losses{Truncated: 1, Gaps: 1, Bytes: 4}},

		{"truncated in a header", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "abcdef", cut: 11},
		), "", Losses{Truncated: 1}},

		{"keep-alive probes", handshake(
			tcp{at: 400, from: Client, seq: 100, payload: "ab"},
			tcp{at: 500, from: Client, seq: 101, payload: "\x00"},
			tcp{at: 600, from: Client, seq: 101, ack: 500},
			tcp{at: 700, from: Client, seq: 102, payload: "c"},
		), opened + "0 400 \"ab\"\n0 700 \"c\"\n700 end 4\n", Losses{}},

		{"reset by the client, whose server still sends", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 500, from: Client, seq: 100, flags: rst},
			tcp{at: 600, from: Server, seq: 502, payload: "cd"},
		), opened + "1 400 \"ab\"\n500 end 1\n", Losses{}},

		{"reset by the server, with a hole", handshake(
			tcp{at: 400, from: Server, seq: 501, payload: "ab"},
			tcp{at: 500, from: Server, seq: 503, flags: rst},
		), opened + "1 400 gap 1\n1 400 \"ab\"\n500 end 2\n", Losses{Gaps: 1, Bytes: 1}},

		{"a reset of another connection", handshake(
			tcp{at: 400, from: Server, seq: 500, payload: "ab"},
			tcp{at: 500, from: Server, seq: 1 << 31, flags: rst},
			tcp{at: 600, from: Server, seq: 502, payload: "cd"},
		), opened + "1 400 \"ab\"\n1 600 \"cd\"\n600 end 4\n", Losses{}},

		{"ports used again", handshake(
			tcp{at: 400, from: Client, seq: 100, payload: "ab"},
			tcp{at: 500, from: Client, seq: 7000, flags: syn},
			tcp{at: 550, from: Server, seq: 9000, ack: 7001, flags: syn},
			tcp{at: 600, from: Client, seq: 7001, payload: "cd"},
		), opened + "0 400 \"ab\"\n500 end 3\n10.0.0.1:40000 10.0.0.2:8000 whole rtt 0s 50µs\n0 600 \"cd\"\n600 end 4\n", Losses{}},

		{"ports used again, unseen", handshake(
			tcp{at: 400, from: Client, seq: 100, payload: "ab"},
			tcp{at: 600, from: Client, seq: 1 << 31, payload: "cd"},
			tcp{at: 700, from: Client, seq: 1<<31 + 2, payload: "ef"},
		), opened + "0 400 \"ab\"\n0 700 gap -1\n0 700 \"ef\"\n700 end 4\n", Losses{Gaps: 1}},

		{"a stray packet", handshake(
			tcp{at: 400, from: Client, seq: 100, payload: "ab"},
			tcp{at: 600, from: Client, seq: 1 << 31, payload: "??"},
			tcp{at: 700, from: Client, seq: 102, payload: "cd"},
		), opened + "0 400 \"ab\"\n0 700 \"cd\"\n700 end 4\n", Losses{}},

		{"sequence numbers wrap", []tcp{
			{at: 100, from: Client, seq: 1<<32 - 3, flags: syn},
			{at: 200, from: Client, seq: 1<<32 - 2, payload: "abcd"},
			{at: 300, from: Client, seq: 4, payload: "gh"},
			{at: 400, from: Client, seq: 2, payload: "ef"},
		}, "10.0.0.1:40000 10.0.0.2:8000 whole\n0 200 \"abcd\"\n0 400 \"ef\"\n0 400 \"gh\"\n400 end 4\n", Losses{}},

		{"joined in the middle", []tcp{
			{at: 100, from: Client, seq: 5, ack: 9},
			{at: 200, from: Server, seq: 1000, ack: 500, payload: "ab"},
			{at: 300, from: Client, seq: 600, ack: 1002, payload: "cd"},
			{at: 400, from: Server, seq: 900, payload: "earlier"},
			{at: 500, from: Server, seq: 1002, ack: 602, payload: "ef"},
		}, "10.0.0.1:40000 10.0.0.2:8000\n1 200 \"ab\"\n0 300 \"cd\"\n1 500 \"ef\"\n500 end 4\n", Losses{}},

		{"only SYN-ACK of the handshake", []tcp{
			{at: 120, from: Server, seq: 499, ack: 100, flags: syn},
			{at: 400, from: Client, seq: 102, payload: "b"},
			{at: 500, from: Client, seq: 100, payload: "aa"},
		}, "10.0.0.1:40000 10.0.0.2:8000 whole\n0 500 \"aa\"\n0 500 \"b\"\n500 end 4\n", Losses{}},

		{"FIN before what it ends", handshake(
			tcp{at: 400, from: Server, seq: 502, payload: "cd", flags: fin},
			tcp{at: 500, from: Server, seq: 500, payload: "ab"},
			tcp{at: 600, from: Client, seq: 100, ack: 505},
		), opened + "1 500 \"ab\"\n1 500 \"cd\"\n1 500 close\n600 end 4\n", Losses{}},

		{"FIN behind a hole", handshake(
			tcp{at: 400, from: Server, seq: 502, flags: fin},
			tcp{at: 500, from: Client, seq: 100, ack: 503},
			tcp{at: 600, from: Client, seq: 100, ack: 503, flags: fin},
			tcp{at: 20 * ms, from: Client, seq: 100, ack: 503, flags: fin},
		), opened + "1 600 gap 2\n1 600 close\n600 end 0\n", Losses{Gaps: 1, Bytes: 2}},

		{"twice, with other addresses in a container", []tcp{
			{at: 100, from: Client, seq: 99, flags: syn},
			{at: 101, from: Client, seq: 99, flags: syn, inside: true},
			{at: 119, from: Server, seq: 499, ack: 100, flags: syn, inside: true},
			{at: 120, from: Server, seq: 499, ack: 100, flags: syn},
			{at: 300, from: Client, seq: 100, ack: 500},
			{at: 301, from: Client, seq: 100, ack: 500, inside: true},
			{at: 400, from: Client, seq: 100, payload: "a"},
			{at: 401, from: Client, seq: 100, payload: "a", inside: true},
		}, opened + "0 400 \"a\"\n401 end 4\n", Losses{}},

		{"twice, joined in the middle", []tcp{
			{at: 400, from: Server, seq: 100, ack: 9, payload: "a", inside: true},
			{at: 401, from: Server, seq: 100, ack: 9, payload: "a"},
			{at: 500, from: Server, seq: 101, ack: 9, payload: "b", inside: true},
			{at: 501, from: Server, seq: 101, ack: 9, payload: "b"},
		}, "10.0.0.1:40000 172.17.0.2:8000\n1 400 \"a\"\n1 500 \"b\"\n501 end 4\n", Losses{}},

		{"a connection without data", handshake(
			tcp{at: 600, from: Client, seq: 100, ack: 500, flags: fin},
			tcp{at: 700, from: Server, seq: 500, ack: 101, flags: fin},
		), "", Losses{}},

		{"the clock was set back", handshake(
			tcp{at: 400_000 * ms, from: Server, seq: 500, payload: "a"},
			tcp{at: 1000 * ms, from: Server, seq: 501, payload: "b"},
			tcp{at: 1001 * ms, from: Server, seq: 502, payload: "c"},
		), opened + "1 400000000 \"a\"\nwound 400000000\n1 400000000 \"b\"\n1 400001000 \"c\"\n400001000 end 4\n", Losses{Clock: 1}},

		{"the clock was set back a little", handshake(
			tcp{at: 300 * ms, from: Client, seq: 100, payload: "a"},
			tcp{at: 200 * ms, from: Server, seq: 500, ack: 101, payload: "b"},
			tcp{at: 201 * ms, from: Server, seq: 501, ack: 101, payload: "c"},
		), opened + "0 300000 \"a\"\nwound 300000\n1 300000 \"b\"\n1 301000 \"c\"\n301000 end 4\n", Losses{Clock: 1}},

		{"the time of one packet is wrong", handshake(
			tcp{at: 70_000 * ms, from: Server, seq: 500, payload: "a"},
			tcp{at: 10_000 * ms, from: Server, seq: 501, payload: "b"},
			tcp{at: 70_020 * ms, from: Server, seq: 502, payload: "c"},
			tcp{at: 70_030 * ms, from: Server, seq: 503, payload: "d"},
		), opened + "1 70000000 \"a\"\nwound 70000000\n1 70000000 \"b\"\nwound 70000000\n1 70000000 \"c\"\n1 70010000 \"d\"\n70010000 end 4\n", Losses{Clock: 2}},

		{"a machine gets to know the time", handshake(
			tcp{at: 300 * ms, from: Server, seq: 500, payload: "a"},
			tcp{at: 1_700_000_000_000 * ms, from: Server, seq: 501, payload: "b"},
			tcp{at: 1_700_000_000_010 * ms, from: Server, seq: 502, payload: "c"},
		), opened + "1 300000 \"a\"\nwound 300000\n1 300000 \"b\"\n1 310000 \"c\"\n310000 end 4\n", Losses{Clock: 1}},

		{"sent again, and captured late", handshake(
			tcp{at: 300 * ms, from: Server, seq: 500, payload: "a"},
			tcp{at: 400 * ms, from: Server, seq: 501, payload: "b"},
			tcp{at: 300 * ms, from: Server, seq: 500, payload: "a"},
			tcp{at: 401 * ms, from: Server, seq: 502, payload: "c"},
		), opened + "1 300000 \"a\"\n1 400000 \"b\"\n1 401000 \"c\"\n401000 end 4\n", Losses{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, losses := hear(t, 8000, captureOf(t, test.segments...))
			if got != test.want || losses != test.losses {
				t.Errorf("heard\n%s\nwant\n%s\n%+v, want %+v", got, test.want, losses, test.losses)
			}
		})
	}
}

// TestLocal checks that live packets to any loopback address are captured at both ends, and others where an address is local.
func TestLocal(t *testing.T) {
	a := NewAssembler(Options{})
	a.local = map[netip.Addr]bool{netip.MustParseAddr("127.0.0.1"): true, netip.MustParseAddr("10.0.0.1"): true}
	for ends, want := range map[[2]string][2]bool{
		{"127.0.0.1:4", "127.0.0.2:8"}: {true, true},
		{"10.0.0.1:4", "10.0.0.1:8"}:   {true, true},
		{"10.0.0.1:4", "10.0.0.2:8"}:   {true, false},
		{"10.0.0.3:4", "10.0.0.1:8"}:   {false, true},
	} {
		f := a.flow(&conn{key: key{netip.MustParseAddrPort(ends[0]), netip.MustParseAddrPort(ends[1])}})
		if f.AtClient != want[0] || f.AtServer != want[1] {
			t.Errorf("%v: at the client %v, at the server %v", ends, f.AtClient, f.AtServer)
		}
	}
}

// TestAnyPort checks how the client is recognised if no port is given and the handshake was not captured.
func TestAnyPort(t *testing.T) {
	tests := []struct {
		name     string
		segments []tcp
		want     string
	}{
		{"SYN", handshake(tcp{at: 400, from: Server, seq: 500, payload: "hello"}), opened + "1 400 \"hello\"\n400 end 4\n"},
		{"request", []tcp{
			{at: 100, from: Server, seq: 500, payload: "data: x"},
			{at: 200, from: Client, seq: 100, payload: "POST /v1/completions HTTP/1.1"},
			{at: 300, from: Server, seq: 507, payload: "y"},
		}, "10.0.0.1:40000 10.0.0.2:8000\n0 200 \"POST /v1/completions HTTP/1.1\"\n1 300 \"y\"\n300 end 4\n"},
		{"answer", []tcp{{at: 100, from: Server, seq: 500, payload: "HTTP/1.1 200 OK"}}, "10.0.0.1:40000 10.0.0.2:8000\n1 100 \"HTTP/1.1 200 OK\"\n100 end 4\n"},
		{"TLS", []tcp{{at: 100, from: Client, seq: 500, payload: "\x16\x03\x01\x00\x05\x01"}}, "10.0.0.1:40000 10.0.0.2:8000\n0 100 \"\\x16\\x03\\x01\\x00\\x05\\x01\"\n100 end 4\n"},
		{"neither", []tcp{{at: 100, from: Server, seq: 500, payload: "data"}, {at: 200, from: Client, seq: 1, flags: rst}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := hear(t, 0, captureOf(t, test.segments...)); got != test.want {
				t.Errorf("heard\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestOtherPorts checks that connections of other ports, and those that the port's own machine opens to others, are not
// followed.
func TestOtherPorts(t *testing.T) {
	segments := handshake(tcp{at: 400, from: Client, seq: 100, payload: "GET"})
	if got, _ := hear(t, 9000, captureOf(t, segments...)); got != "" {
		t.Errorf("heard of another port: %s", got)
	}
	reversed := slices.Clone(segments[:1])
	reversed[0].from = Server
	if got, _ := hear(t, 8000, captureOf(t, reversed...)); got != "" {
		t.Errorf("heard of a client whose own port it is: %s", got)
	}
}

// TestHalfOpen checks that connections without data are bounded, and do not displace those with data.
func TestHalfOpen(t *testing.T) {
	var heard []string
	a := NewAssembler(Options{Port: 8000, Open: func(f *Flow) Listener {
		heard = append(heard, f.Client.String())
		return &log{}
	}})
	send := func(s tcp) {
		b := s.ip(t, false)
		a.frame(&frame{at: s.at * 1000, link: linkRaw, length: len(b), data: b})
	}
	for _, s := range handshake(tcp{at: 400, from: Client, seq: 100, payload: "x"}) {
		send(s)
	}
	b := tcp{from: Client, seq: 1, flags: syn}.ip(t, false)
	const flood = 1_000_000
	for i := range flood {
		copy(b[12:], []byte{172, byte(i >> 16), byte(i >> 8), byte(i)})
		binary.BigEndian.PutUint32(b[24:], uint32(1000+i))
		a.frame(&frame{at: 500_000 + int64(i), link: linkRaw, length: len(b), data: b})
	}
	send(tcp{at: 2000, from: Client, seq: 101, payload: "y"})
	if n := len(a.conns); n > maxOpening+1 {
		t.Errorf("%d connections are kept", n)
	}
	if want := flood - maxOpening; a.Losses().Connections != want {
		t.Errorf("%d connections given up, want %d", a.Losses().Connections, want)
	}
	if strings.Join(heard, " ") != "10.0.0.1:40000" {
		t.Errorf("opened %v", heard)
	}
}
