package capture

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"time"
)

// streamed returns a file of about size bytes: streams whose events are acknowledged each, as tcpdump writes them.
func streamed(b *testing.B, streams, size int) []byte {
	b.Helper()
	const payload = 250
	event := strings.Repeat("x", payload)
	var out bytes.Buffer
	out.Grow(size + 1<<20)
	out.Write(captureOf(b).Bytes())
	write := func(at int64, packet []byte) {
		out.Write(binary.LittleEndian.AppendUint32(nil, uint32(at/1e9)))
		out.Write(binary.LittleEndian.AppendUint32(nil, uint32(at%1e9)))
		out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(packet))))
		out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(packet))))
		out.Write(packet)
	}
	data := tcp{from: Server, payload: event, ack: 2}.ip(b, false)
	ack := tcp{ack: 1}.ip(b, false)
	for at, turn := int64(0), uint32(0); out.Len() < size; turn++ {
		for i := range streams {
			at += 1000
			binary.BigEndian.PutUint16(data[22:], uint16(10000+i))
			binary.BigEndian.PutUint16(ack[20:], uint16(10000+i))
			binary.BigEndian.PutUint32(data[24:], turn*payload)
			binary.BigEndian.PutUint32(ack[28:], (turn+1)*payload)
			write(at, data)
			write(at+500, ack)
		}
	}
	return out.Bytes()
}

// BenchmarkFile reads a file of 300 streams.
func BenchmarkFile(b *testing.B) {
	file := streamed(b, 300, 256<<20)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		src, err := OpenFile(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		var total ear
		a := NewAssembler(Options{Port: 8000, Open: func(*Flow) Listener { return &total }})
		if err := a.Run(b.Context(), src); err != nil {
			b.Fatal(err)
		}
		if total.gaps != 0 || total.bytes[Server] == 0 {
			b.Fatalf("%+v", total)
		}
	}
}

// BenchmarkConnections reports the memory of 10,000 connections that have sent data, each with a segment that waits.
func BenchmarkConnections(b *testing.B) {
	const connections = 10_000
	for b.Loop() {
		a := NewAssembler(Options{Port: 8000, Open: func(*Flow) Listener { return &ear{} }})
		before := heap()
		for i := range connections {
			for _, s := range handshake(
				tcp{at: 400, from: Client, seq: 100, ack: 500, payload: "GET"},
				tcp{at: 401, from: Server, seq: 600, ack: 103, payload: strings.Repeat("x", 250)},
			) {
				s.client = uint16(10_000 + i)
				packet := s.ip(b, false)
				a.frame(&frame{at: s.at*1000 + int64(i), link: linkRaw, length: len(packet), data: packet})
			}
		}
		if a.open.n != connections || a.slow.n != connections {
			b.Fatalf("%d connections, %d wait", a.open.n, a.slow.n)
		}
		b.ReportMetric(float64(heap()-before)/connections, "B/connection")
		runtime.KeepAlive(a)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ear is a listener that counts.
type ear struct {
	flow   Flow
	bytes  [2]int
	gaps   int
	ended  func(*ear)
	ending Ending
}

func (e *ear) Data(from Side, _ time.Time, b []byte) { e.bytes[from] += len(b) }
func (e *ear) Gap(Side, time.Time, int)              { e.gaps++ }
func (e *ear) Close(Side, time.Time)                 {}
func (e *ear) End(_ time.Time, why Ending) {
	e.ending = why
	if e.ended != nil {
		e.ended(e)
	}
}
