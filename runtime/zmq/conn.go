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
)

// The protocol is ZMTP 3.0 (https://rfc.zeromq.org/spec/23/) without security, of which a subscriber needs little: a greeting, a command, a subscription, and
// frames. Publishers of libzmq speak it with everybody who says that it is what he speaks.

// The bounds of what a publisher may send.
const (
	maxMessage = 4 << 20 // bytes of all frames of a message
	maxFrames  = 8
	maxCommand = 64 << 10
)

// shakeWithin is how long the greeting may take.
const shakeWithin = 5 * time.Second

// Flags of a frame.
const (
	more    = 1 << 0
	long    = 1 << 1
	command = 1 << 2
)

// signature begins a greeting, version 3.0 and no security follow.
var greeting = append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x00NULL"), make([]byte, 48)...)

// conn is a connection to a publisher.
type conn struct {
	net.Conn
	in *bufio.Reader
}

// shake greets the publisher and subscribes to everything.
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
		return nil, errors.New("it does not speak ZMQ")
	case theirs[10] < 3:
		return nil, fmt.Errorf("it speaks version %d of ZMQ's protocol, which is too old", theirs[10])
	case string(bytes.TrimRight(theirs[12:32], "\x00")) != "NULL":
		return nil, fmt.Errorf("it wants ZMQ's security %q, which is not supported", bytes.TrimRight(theirs[12:32], "\x00"))
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

// ready reads what the other side is.
func (k *conn) ready() error {
	flags, body, err := k.frame(maxCommand)
	switch {
	case err != nil:
		return err
	case flags&command != 0 && bytes.HasPrefix(body, []byte("\x05ERROR")):
		return fmt.Errorf("it refuses: %q", body[6:])
	case flags&command == 0 || !bytes.HasPrefix(body, []byte("\x05READY")):
		return errors.New("it does not follow ZMQ's protocol")
	}
	kind := socketType(body[6:])
	if kind != "PUB" && kind != "XPUB" {
		return fmt.Errorf("it is a ZMQ socket of type %.20q, not one that publishes", kind)
	}
	return nil
}

// socketType finds what a socket is in the properties of its READY.
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

// frame reads a frame of at most so many bytes.
func (k *conn) frame(most uint64) (flags byte, body []byte, err error) {
	if flags, err = k.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	if flags&^(more|long|command) != 0 {
		return 0, nil, fmt.Errorf("it sends a frame of unknown kind 0x%02x", flags)
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
		return 0, nil, fmt.Errorf("it sends a frame of %d bytes, where at most %d make sense", n, most)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(k.in, body)
	return flags, body, cut(err)
}

// cut is the error of a connection that breaks off within a frame.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// message reads the frames of the next message, and answers commands that come before it.
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
			return nil, fmt.Errorf("it sends a message of more than %d frames", maxFrames)
		}
	}
}

// obey answers a heartbeat. Other commands need none.
func (k *conn) obey(body []byte) error {
	if ping := []byte("\x04PING"); bytes.HasPrefix(body, ping) && len(body) >= len(ping)+2 {
		return k.send(command, "\x04PONG"+string(body[len(ping)+2:min(len(body), len(ping)+2+16)])) // without the time to live
	}
	return nil
}
