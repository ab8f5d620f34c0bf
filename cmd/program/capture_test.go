package program_test

import (
	endian "encoding/binary"
	"fmt"
	"time"
)

// capture is a file of packets that tests write: raw IPv4, in microseconds.
type capture struct {
	file []byte
	at   time.Time
	seq  [2]uint32
	id   uint16 // of the client's port
}

// ports of the captured server.
const (
	capturedPort = 8000
	capturedPage = 9000 // a server of another kind
)

func newCapture() *capture {
	c := &capture{at: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)}
	for _, word := range []uint32{0xa1b2c3d4, 2 | 4<<16, 0, 0, 1 << 18, 101} {
		c.file = endian.LittleEndian.AppendUint32(c.file, word)
	}
	return c
}

// Flags of TCP.
const (
	tcpFIN = 1 << iota
	tcpSYN
	_
	tcpPSH
	tcpACK
)

// packet adds a packet of the client (from 0) or of the server, after a time.
func (c *capture) packet(after time.Duration, from int, port uint16, flags byte, text string) {
	c.at = c.at.Add(after)
	ends := [2]uint16{40000 + c.id, port}
	hosts := [2]byte{byte(7 + c.id%2), 1}
	b := make([]byte, 40, 40+len(text))
	b[0], b[8], b[9] = 0x45, 64, 6
	endian.BigEndian.PutUint16(b[2:], uint16(40+len(text)))
	copy(b[12:], []byte{10, 0, 0, hosts[from]})
	copy(b[16:], []byte{10, 0, 0, hosts[1-from]})
	endian.BigEndian.PutUint16(b[20:], ends[from])
	endian.BigEndian.PutUint16(b[22:], ends[1-from])
	endian.BigEndian.PutUint32(b[24:], c.seq[from])
	endian.BigEndian.PutUint32(b[28:], c.seq[1-from])
	b[32], b[33] = 5<<4, flags
	b = append(b, text...)
	for _, word := range []uint32{uint32(c.at.Unix()), uint32(c.at.Nanosecond() / 1000), uint32(len(b)), uint32(len(b))} {
		c.file = endian.LittleEndian.AppendUint32(c.file, word)
	}
	c.file = append(c.file, b...)
	c.seq[from] += uint32(len(text))
	if flags&(tcpSYN|tcpFIN) != 0 {
		c.seq[from]++
	}
}

// open begins a connection whose client is 4 ms away.
func (c *capture) open(port uint16) {
	c.id++
	c.seq = [2]uint32{uint32(c.id) * 100_000, uint32(c.id) * 700_000} // as chance would have it: each its own
	c.packet(time.Millisecond, 0, port, tcpSYN, "")
	c.packet(time.Millisecond, 1, port, tcpSYN|tcpACK, "")
	c.packet(3*time.Millisecond, 0, port, tcpACK, "")
}

func (c *capture) close(port uint16) {
	c.packet(time.Millisecond, 0, port, tcpFIN|tcpACK, "")
	c.packet(time.Millisecond, 1, port, tcpFIN|tcpACK, "")
	c.packet(time.Millisecond, 0, port, tcpACK, "")
}

// answer streams tokens, 20 ms apart; the first after 50 ms.
func (c *capture) answer(tokens int) {
	const body = `{"model":"tiny","stream":true,"messages":[{"role":"user","content":"a secret"}]}`
	c.packet(time.Millisecond, 0, capturedPort, tcpPSH|tcpACK, fmt.Sprintf(
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-secret\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	c.packet(2*time.Millisecond, 1, capturedPort, tcpPSH|tcpACK,
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := func(after time.Duration, text string) {
		c.packet(after, 1, capturedPort, tcpPSH|tcpACK, fmt.Sprintf("%x\r\n%s\r\n", len(text), text))
	}
	after := 48 * time.Millisecond
	for range tokens {
		chunk(after, `data: {"model":"tiny","choices":[{"index":0,"delta":{"content":"a secret "}}]}`+"\n\n")
		after = 20 * time.Millisecond
	}
	chunk(time.Millisecond, fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":%d}}`, tokens)+
		"\n\ndata: [DONE]\n\n")
	chunk(0, "")
}

// captured returns a capture of three requests on two connections, and of a page of another server.
func captured() []byte {
	c := newCapture()
	c.open(capturedPage)
	c.packet(time.Millisecond, 0, capturedPage, tcpPSH|tcpACK, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	c.packet(time.Millisecond, 1, capturedPage, tcpPSH|tcpACK, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	c.close(capturedPage)
	c.open(capturedPort)
	c.answer(30)
	c.answer(20)
	c.close(capturedPort)
	c.open(capturedPort)
	c.answer(10)
	c.close(capturedPort)
	return c.file
}
