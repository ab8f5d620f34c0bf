package capture

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// side checks what a listener hears of one side against the bytes that were sent and captured.
type side struct {
	isn    uint32
	stream []byte
	first  []int64 // when each byte was captured first, in µs; 0: never
	at     int     // next byte
	latest int64   // latest of first before it
	closed bool
}

// checker is the listener of the property.
type checker struct {
	t     *rapid.T
	sides [2]side
	ended bool
}

func (c *checker) Data(from Side, at time.Time, b []byte) {
	s := &c.sides[from]
	for _, x := range b {
		switch {
		case s.at >= len(s.stream):
			c.t.Fatalf("side %d: byte %d of %d", from, s.at, len(s.stream))
		case s.first[s.at] == 0:
			c.t.Fatalf("side %d: byte %d was never captured", from, s.at)
		case x != s.stream[s.at]:
			c.t.Fatalf("side %d: byte %d is %d, want %d", from, s.at, x, s.stream[s.at])
		}
		s.latest = max(s.latest, s.first[s.at])
		s.at++
	}
	if at.UnixMicro() != s.latest {
		c.t.Fatalf("side %d: byte %d at %d, want %d", from, s.at-1, at.UnixMicro(), s.latest)
	}
}

func (c *checker) Gap(from Side, _ time.Time, n int) {
	s := &c.sides[from]
	for range n {
		if s.at >= len(s.stream) || s.first[s.at] != 0 {
			c.t.Fatalf("side %d: byte %d is reported as missing", from, s.at)
		}
		s.at++
	}
	if n <= 0 {
		c.t.Fatalf("side %d: a gap of %d bytes", from, n)
	}
}

func (c *checker) Close(from Side, _ time.Time) {
	s := &c.sides[from]
	if s.closed || s.at != len(s.stream) {
		c.t.Fatalf("side %d: closed at byte %d of %d", from, s.at, len(s.stream))
	}
	s.closed = true
}

func (c *checker) End(time.Time, Ending) { c.ended = true }

// captured is a segment of the property, before it is ordered.
type captured struct {
	from       Side
	begin, end int
	place      int
}

// TestAnyCapture cuts random bytes of both sides into segments, loses, repeats, overlaps and reorders them, joins them in
// the beginning or in the middle, with and without acknowledgements, and expects every captured byte once, at its offset,
// with its time, and every other as missing.
func TestAnyCapture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &checker{t: t}
		whole, acks := rapid.Bool().Draw(t, "whole"), rapid.Bool().Draw(t, "acks")
		fins := rapid.Bool().Draw(t, "fins")
		var all []captured
		for from := range Server + 1 {
			s := &c.sides[from]
			s.isn = rapid.Uint32().Draw(t, "isn")
			s.stream = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
			s.first = make([]int64, len(s.stream))
			all = append(all, cutUp(t, from, len(s.stream))...)
		}
		slices.SortStableFunc(all, func(a, b captured) int { return a.place - b.place })
		segments := c.order(t, all, whole, acks, fins)
		heard := false
		a := NewAssembler(Options{Port: 8000, Open: func(f *Flow) Listener {
			heard = true
			if f.Whole != whole {
				t.Fatalf("whole: %v", f.Whole)
			}
			return c
		}})
		for _, s := range segments {
			b := s.ip(t, false)
			a.frame(&frame{at: s.at * 1000, link: linkRaw, length: len(b), data: b})
		}
		a.stop()
		if heard != c.ended {
			t.Fatalf("opened %v, ended %v", heard, c.ended)
		}
		for from := range Server + 1 {
			s := &c.sides[from]
			for i := s.at; i < len(s.stream); i++ {
				if s.first[i] != 0 {
					t.Fatalf("side %d: byte %d was captured, and is not heard after %d", from, i, s.at)
				}
			}
		}
		if a.held != 0 {
			t.Fatalf("%d bytes are left", a.held)
		}
	})
}

// cutUp returns segments of n bytes of one side, some lost, some twice, some with other borders.
func cutUp(t *rapid.T, from Side, n int) []captured {
	var out []captured
	for at, i := 0, 0; at < n; i++ {
		end := min(at+rapid.IntRange(1, 40).Draw(t, "length"), n)
		for range rapid.SampledFrom([]int{1, 1, 1, 1, 0, 2}).Draw(t, "copies") {
			begin := at
			if rapid.IntRange(0, 5).Draw(t, "overlap") == 0 {
				begin = max(at-rapid.IntRange(0, 60).Draw(t, "before"), 0)
			}
			out = append(out, captured{from: from, begin: begin, end: end, place: i + rapid.SampledFrom([]int{0, 0, 0, 1, 2, 6}).Draw(t, "late")})
		}
		at = end
	}
	return out
}

// order returns the segments as captured, notes when each byte is captured first, and adds the beginning, the end and
// acknowledgements of what was captured or will never be.
func (c *checker) order(t *rapid.T, all []captured, whole, acks, fins bool) []tcp {
	var out []tcp
	at := int64(1000)
	add := func(s tcp) {
		s.at = at
		at += 10
		out = append(out, s)
	}
	last := map[string]int{} // when each byte is captured last
	for i, v := range all {
		for b := v.begin; b < v.end; b++ {
			last[fmt.Sprint(v.from, b)] = i
		}
	}
	if whole {
		add(tcp{from: Client, seq: c.sides[Client].isn, flags: syn})
		add(tcp{from: Server, seq: c.sides[Server].isn, ack: c.sides[Client].isn + 1, flags: syn | flagACK})
	}
	begun := [2]bool{whole, whole}
	for i, v := range all {
		s := &c.sides[v.from]
		if !begun[v.from] {
			begun[v.from], s.at = true, v.begin
			clear(s.first[:v.begin])
		}
		seg := tcp{from: v.from, seq: s.isn + 1 + uint32(v.begin), payload: string(s.stream[v.begin:v.end])}
		if other := &c.sides[1-v.from]; acks && begun[1-v.from] {
			n := 0
			for n < len(other.stream) {
				if final, ok := last[fmt.Sprint(1-v.from, n)]; ok && final >= i && n >= other.at {
					break
				}
				n++
			}
			seg.flags |= flagACK
			seg.ack = other.isn + 1 + uint32(rapid.IntRange(0, n).Draw(t, "ack"))
		}
		for b := max(v.begin, s.at); b < v.end; b++ {
			if s.first[b] == 0 {
				s.first[b] = at
			}
		}
		add(seg)
	}
	if fins && whole {
		for from := range Server + 1 {
			s := &c.sides[from]
			add(tcp{from: from, seq: s.isn + 1 + uint32(len(s.stream)), flags: fin})
		}
	}
	return out
}
