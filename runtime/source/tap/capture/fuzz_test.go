package capture

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

// strict is a listener that checks the order of calls.
type strict struct {
	t      *testing.T
	closed [2]bool
	last   [2]time.Time
	ended  bool
}

func (s *strict) call(from Side, at time.Time) {
	if s.ended || s.closed[from] {
		s.t.Fatalf("a call after the end: %+v", s)
	}
	if back := s.last[from].Sub(at); back > 0 && back < time.Duration(maxBack) {
		s.t.Fatalf("time goes back by %v", back)
	}
	s.last[from] = at
}

func (s *strict) Data(from Side, at time.Time, b []byte) {
	s.call(from, at)
	if len(b) == 0 {
		s.t.Fatal("no bytes")
	}
}

func (s *strict) Gap(from Side, at time.Time, n int) {
	s.call(from, at)
	if n == 0 || n < -1 || n > 2*maxJump {
		s.t.Fatalf("a gap of %d bytes", n)
	}
}

func (s *strict) Close(from Side, at time.Time) {
	s.call(from, at)
	s.closed[from] = true
}

func (s *strict) End(time.Time, Ending) {
	if s.ended {
		s.t.Fatal("ended twice")
	}
	s.ended = true
}

// FuzzFile reads any bytes as a capture file.
func FuzzFile(f *testing.F) {
	f.Add(captureOf(f, exchange...).Bytes(), uint16(8000))
	f.Add(captureOf(f, exchange...).Bytes(), uint16(0))
	f.Add(ng(f, binary.LittleEndian).Bytes(), uint16(0))
	f.Add(swapped(f, binary.BigEndian, true).Bytes(), uint16(8000))
	f.Fuzz(func(t *testing.T, b []byte, port uint16) {
		src, err := OpenFile(bytes.NewReader(b))
		if err != nil {
			return
		}
		var all []*strict
		a := NewAssembler(Options{Port: port, Open: func(*Flow) Listener {
			s := &strict{t: t}
			all = append(all, s)
			return s
		}})
		_ = a.Run(t.Context(), src)
		checkEnded(t, a, all)
	})
}

// FuzzSegments takes any segments of few connections: 12 bytes each say which, and what it holds.
func FuzzSegments(f *testing.F) {
	f.Add([]byte("\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x12\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x10\x00\x00\x00\x01\x00\x01\x00\x00\x04\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var all []*strict
		a := NewAssembler(Options{Open: func(*Flow) Listener {
			s := &strict{t: t}
			all = append(all, s)
			return s
		}})
		at := int64(1)
		for ; len(b) >= 12; b = b[12:] {
			from, payload := clientAddr, bytes.Repeat([]byte("GET "), 64)[:b[10]]
			to := serverAddr
			if b[0]&1 != 0 {
				from, to = to, from
			}
			at += int64(b[11]) * int64(b[11]) * int64(time.Millisecond)
			p := packet{
				at: at, flags: b[1], payload: payload, missing: int(b[0] >> 6),
				seq: be32(b[2:]), ack: be32(b[6:]), dir: direction(b[0] >> 2 & 1),
				src: netip.AddrPortFrom(from, 1+uint16(b[0]>>4&1)), dst: netip.AddrPortFrom(to, 1+uint16(b[0]>>4&1)),
			}
			a.segment(&p)
		}
		a.stop()
		checkEnded(t, a, all)
	})
}

// checkEnded checks that all connections have ended and nothing is kept.
func checkEnded(t *testing.T, a *Assembler, all []*strict) {
	for _, s := range all {
		if !s.ended {
			t.Fatal("a connection has not ended")
		}
	}
	if a.held != 0 || a.slow.n != 0 || a.fast.n != 0 || a.open.n != 0 || a.opening.n != 0 || len(a.conns) != 0 {
		t.Fatalf("left: %d bytes, %d and %d sides, %d, %d and %d connections", a.held, a.slow.n, a.fast.n, a.open.n, a.opening.n, len(a.conns))
	}
}
