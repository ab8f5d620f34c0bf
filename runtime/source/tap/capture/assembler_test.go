package capture

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// log is a listener that writes down what it hears.
type log struct{ bytes.Buffer }

func (l *log) Data(from Side, at time.Time, b []byte) {
	fmt.Fprintf(l, "%d %d %q\n", from, at.UnixMicro(), b)
}

func (l *log) Gap(from Side, at time.Time, n int) {
	fmt.Fprintf(l, "%d %d gap %d\n", from, at.UnixMicro(), n)
}

func (l *log) Close(from Side, at time.Time) { fmt.Fprintf(l, "%d %d close\n", from, at.UnixMicro()) }

func (l *log) End(at time.Time, why Ending) { fmt.Fprintf(l, "%d end %d\n", at.UnixMicro(), why) }

// TestInOrder reads a file of one request.
func TestInOrder(t *testing.T) {
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	send := func(client bool, seq, ack uint32, syn, fin bool, payload string) {
		ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
		tcp := &layers.TCP{SrcPort: 40000, DstPort: 8000, Seq: seq, Ack: ack, SYN: syn, FIN: fin, ACK: ack != 0}
		if !client {
			ip.SrcIP, ip.DstIP, tcp.SrcPort, tcp.DstPort = ip.DstIP, ip.SrcIP, tcp.DstPort, tcp.SrcPort
		}
		_ = tcp.SetNetworkLayerForChecksum(ip)
		b := gopacket.NewSerializeBuffer()
		eth := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: layers.EthernetTypeIPv4}
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, eth, ip, tcp, gopacket.Payload(payload)); err != nil {
			t.Fatal(err)
		}
		at += 100
		ci := gopacket.CaptureInfo{Timestamp: time.UnixMicro(at), CaptureLength: len(b.Bytes()), Length: len(b.Bytes())}
		if err := w.WritePacket(ci, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	send(true, 99, 0, true, false, "")
	send(false, 499, 100, true, false, "")
	send(true, 100, 500, false, false, "")
	send(true, 100, 500, false, false, "GET ")
	send(true, 104, 500, false, false, "/")
	send(false, 500, 105, false, false, "HTTP/1.1")
	send(false, 508, 105, false, true, "")
	send(true, 105, 509, false, true, "")
	src, err := OpenFile(&file)
	if err != nil {
		t.Fatal(err)
	}
	var l log
	a := NewAssembler(Options{Port: 8000, Open: func(f *Flow) Listener { fmt.Fprintf(&l, "%+v\n", *f); return &l }})
	if err := a.Run(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	want := `{Client:10.0.0.1:40000 Server:10.0.0.2:8000 Whole:true RTT:200µs ServerRTT:100µs AtServer:false AtClient:false}
0 400 "GET "
0 500 "/"
1 600 "HTTP/1.1"
1 700 close
0 800 close
800 end 0
`
	if l.String() != want || a.Losses() != (Losses{}) {
		t.Errorf("heard\n%s\nwant\n%s\n%+v", &l, want, a.Losses())
	}
}
