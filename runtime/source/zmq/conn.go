package zmq

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
)

// The protocol is ZMTP 3.0 (https://rfc.zeromq.org/spec/23/) without security. A subscriber needs only a part of it: a
// greeting, a command, a subscription, and frames. libzmq speaks version 3.0 with any peer that announces it.

// Limits on what a publisher may send.
const (
	maxMessage = 4 << 20 // bytes of all frames of a message
	maxFrames  = 8
	maxCommand = 64 << 10
)

// shakeWithin is the time limit for the handshake.
const shakeWithin = 5 * time.Second

// Flags of a frame.
const (
	more    = 1 << 0
	long    = 1 << 1
	command = 1 << 2
)

// greeting is the signature, version 3.0, and no security.
var greeting = append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL"), make([]byte, 48)...)

// conn is a connection to a publisher.
type conn struct {
	net.Conn
	in *bufio.Reader
}

// shake performs the handshake and subscribes to all topics.
func shake(c net.Conn) (*conn, error) {
	if err := c.SetDeadline(time.Now().Add(shakeWithin)); err != nil {
		return nil, err
	}
	k := &conn{c, bufio.NewReader(c)}
	if _, err := c.Write(greeting); err != nil {
		return nil, err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(k.in, theirs[:]); err != nil {
		return nil, err
	}
	switch {
	case theirs[0] != 0xff || theirs[9] != 0x7f:
		return nil, errors.New("the server does not speak ZMQ")
	case theirs[10] < 3:
		return nil, fmt.Errorf("unsupported ZMTP version %d: need 3 or later", theirs[10])
	case string(bytes.TrimRight(theirs[12:32], "\x00")) != "NULL":
		return nil, fmt.Errorf("unsupported ZMQ security %s", clean.Quote(string(bytes.TrimRight(theirs[12:32], "\x00"))))
	}
	if err := k.send(command, "\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"); err != nil {
		return nil, err
	}
	if err := k.ready(); err != nil {
		return nil, err
	}
	if err := k.send(0, "\x01"); err != nil {
		return nil, err
	}
	return k, c.SetDeadline(time.Time{})
}

// ready reads the READY command and checks that the peer is a publisher.
func (k *conn) ready() error {
	flags, body, err := k.frame(maxCommand)
	switch {
	case err != nil:
		return err
	case flags&command != 0 && bytes.HasPrefix(body, []byte("\x05ERROR")):
		return fmt.Errorf("the publisher refused the connection: %s", clean.Quote(string(body[6:])))
	case flags&command == 0 || !bytes.HasPrefix(body, []byte("\x05READY")):
		return errors.New("ZMQ protocol violation: no READY command")
	}
	kind := socketType(body[6:])
	if kind != "PUB" && kind != "XPUB" {
		return fmt.Errorf("ZMQ socket of type %s: need PUB or XPUB", clean.Quote(kind))
	}
	return nil
}

// socketType returns the socket type in the properties of a READY command.
func socketType(in []byte) string {
	for len(in) > 0 {
		n := int(in[0])
		if len(in) < 1+n+4 {
			return ""
		}
		name, size := string(in[1:1+n]), binary.BigEndian.Uint32(in[1+n:])
		in = in[1+n+4:]
		if uint64(size) > uint64(len(in)) {
			return ""
		}
		if strings.EqualFold(name, "Socket-Type") {
			return string(in[:size])
		}
		in = in[size:]
	}
	return ""
}

// send writes a short frame.
func (k *conn) send(flags byte, body string) error {
	_, err := k.Write(append([]byte{flags, byte(len(body))}, body...))
	return err
}

// frame reads a frame of at most most bytes.
func (k *conn) frame(most uint64) (flags byte, body []byte, err error) {
	if flags, err = k.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	if flags&^(more|long|command) != 0 {
		return 0, nil, fmt.Errorf("frame with unknown flags 0x%02x", flags)
	}
	var size [8]byte
	part := size[7:]
	if flags&long != 0 {
		part = size[:]
	}
	if _, err := io.ReadFull(k.in, part); err != nil {
		return 0, nil, cut(err)
	}
	n := binary.BigEndian.Uint64(size[:])
	if n > most {
		return 0, nil, fmt.Errorf("frame of %d bytes: limit %d", n, most)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(k.in, body)
	return flags, body, cut(err)
}

// cut turns an end of input inside a frame into io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// message reads the frames of the next message, and answers commands before it.
func (k *conn) message() (frames [][]byte, err error) {
	left := uint64(maxMessage)
	for {
		flags, body, err := k.frame(left)
		switch {
		case err != nil:
			return nil, err
		case flags&command != 0:
			if err := k.obey(body); err != nil {
				return nil, err
			}
			continue
		}
		left -= uint64(len(body))
		if frames = append(frames, body); flags&more == 0 {
			return frames, nil
		}
		if len(frames) >= maxFrames {
			return nil, fmt.Errorf("message of more than %d frames", maxFrames)
		}
	}
}

// obey answers a PING. Other commands need no answer.
func (k *conn) obey(body []byte) error {
	if ping := []byte("\x04PING"); bytes.HasPrefix(body, ping) && len(body) >= len(ping)+2 {
		return k.send(command, "\x04PONG"+string(body[len(ping)+2:min(len(body), len(ping)+2+16)])) // without the time to live
	}
	return nil
}
