package tap

import (
	"bytes"
	"strconv"
)

// Bounds of HTTP/1.1 messages.
const (
	maxHead = 64 << 10 // bytes of a head: the first line and the headers
	maxLine = 1 << 10  // bytes of the line before a chunk, and of one after the last
)

// place is where in a message the next byte of a side stands.
type place uint8

const (
	atHead      place = iota // in the head, or before it
	inBody                   // of a known length
	inChunk                  // of a chunked body
	atChunkLine              // the line before a chunk
	afterChunk               // the line end after a chunk
	inTrailer                // after the last chunk
	untilClose               // in a body that ends with the connection
	nowhere                  // unknown, until something is found that only the beginning of a message can be
)

// part is what framing.next has found.
type part uint8

const (
	partNone   part = iota // nothing: more bytes are needed, or it is skipped
	partHead               // a whole head
	partBody               // bytes of a body
	partFound              // a chunk begins here, after bytes of which it was not known where they stood
	partEnd                // the end of a message
	partBroken             // this is not HTTP/1.1, or the head is too long
)

// framing cuts the bytes that one side sends into the messages of HTTP/1.1. The zero value is at the beginning of a
// message.
type framing struct {
	place
	server  bool   // the messages are answers
	chunked bool   // nowhere: a chunk may be found
	left    int64  // of inBody and inChunk
	held    []byte // the beginning of a head or line
}

// next returns the first part of b and how many bytes of b it ends after. piece is valid until b is used again or next is
// called. begins: b is the beginning of what was sent together.
func (f *framing) next(b []byte, begins bool) (what part, piece []byte, n int) {
	switch f.place {
	case atHead:
		return f.nextHead(b)
	case inBody, inChunk:
		if f.ended() {
			f.place = atHead
			return partEnd, nil, 0
		}
		n = int(min(f.left, int64(len(b))))
		if f.left -= int64(n); f.left == 0 && f.place == inChunk {
			f.place = afterChunk
		}
		return partBody, b[:n], n
	case untilClose:
		return partBody, b, len(b)
	case nowhere:
		return f.find(b, begins)
	}
	line, n, ok := f.line(b)
	switch {
	case !ok:
		return f.lose(), nil, n
	case line == nil:
		return partNone, nil, n
	}
	switch f.place {
	case afterChunk:
		if f.place = atChunkLine; len(line) > 0 {
			return f.lose(), nil, n
		}
	case inTrailer:
		if len(line) == 0 {
			f.place = atHead
			return partEnd, nil, n
		}
	default:
		size, ok := chunkSize(line)
		switch {
		case !ok:
			return f.lose(), nil, n
		case size == 0:
			f.place = inTrailer
		default:
			f.place, f.left = inChunk, size
		}
	}
	return partNone, nil, n
}

// ended reports whether the message ends here: next returns partEnd even without a byte.
func (f *framing) ended() bool { return f.place == inBody && f.left == 0 }

// lose forgets where the next byte stands.
func (f *framing) lose() part {
	f.place, f.held = nowhere, nil
	return partBroken
}

// nextHead returns the head, once it is whole.
func (f *framing) nextHead(b []byte) (part, []byte, int) {
	n := 0
	if len(f.held) == 0 {
		for n < len(b) && (b[n] == '\r' || b[n] == '\n') { // empty lines before it
			n++
		}
		b = b[n:]
		if end := headEnd(b, 0); end > 0 && end <= maxHead {
			return partHead, b[:end], n + end
		}
	}
	before := len(f.held)
	f.held = append(f.held, b[:min(len(b), maxHead+1-before)]...)
	end := headEnd(f.held, max(before-3, 0))
	switch {
	case !f.couldBegin(f.held):
		return f.lose(), nil, n + len(b)
	case end > 0:
		head := f.held[:end]
		f.held = nil
		return partHead, head, n + end - before
	case len(f.held) > maxHead:
		return f.lose(), nil, n + len(b)
	}
	return partNone, nil, n + len(b)
}

// headEnd returns the length of the head at the beginning of b, with the empty line; 0: it is not whole. It is known that
// none ends before from.
func headEnd(b []byte, from int) int {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0
		}
		from += i + 1
		switch rest := b[from:]; {
		case bytes.HasPrefix(rest, []byte("\n")):
			return from + 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return from + 2
		}
	}
}

// maxMethod limits the length of a method.
const maxMethod = 20

// couldBegin reports whether a message may begin with b.
func (f *framing) couldBegin(b []byte) bool {
	if f.server {
		const version = "HTTP/1."
		n := min(len(b), len(version))
		return string(b[:n]) == version[:n]
	}
	for i, c := range b[:min(len(b), maxMethod)] {
		switch {
		case c == ' ':
			return i > 0
		case c < 'A' || c > 'Z':
			return false
		}
	}
	return len(b) < maxMethod
}

// begins reports whether a message certainly begins with b: neither JSON nor a chunk can hold its first line.
func (f *framing) begins(b []byte) bool {
	if !f.couldBegin(b) {
		return false
	}
	line, _, found := bytes.Cut(b[:min(len(b), maxHead)], []byte{'\n'})
	if !found {
		return false
	}
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if f.server {
		_, ok := statusLine(line)
		return ok
	}
	_, _, ok := requestLine(line)
	return ok
}

// line returns the next line, without its end; nil: it is not whole. false: it is too long.
func (f *framing) line(b []byte) (line []byte, n int, ok bool) {
	i := bytes.IndexByte(b, '\n')
	if n = i + 1; i < 0 {
		n = len(b)
	}
	if len(f.held)+n > maxLine {
		return nil, len(b), false
	}
	if i < 0 {
		f.held = append(f.held, b...)
		return nil, n, true
	}
	if line = b[:i]; len(f.held) > 0 {
		line, f.held = append(f.held, line...), nil
	}
	return bytes.TrimSuffix(line, []byte{'\r'}), n, true
}

// chunkSize returns the size of the chunk after a line.
func chunkSize(line []byte) (int64, bool) {
	line, _, _ = bytes.Cut(line, []byte{';'})
	n, err := strconv.ParseUint(string(bytes.TrimRight(line, " \t")), 16, 63)
	return int64(n), err == nil
}

// find looks for the beginning of a message, or of a chunk that is whole, and goes on there.
func (f *framing) find(b []byte, begins bool) (part, []byte, int) {
	if begins && f.begins(b) {
		f.place = atHead
		return partNone, nil, 0
	}
	if f.chunked {
		if at, ok := findChunk(b); ok {
			f.place = atChunkLine
			return partFound, nil, at
		}
	}
	return partNone, nil, len(b)
}

// findChunk returns where a chunk begins. It is certain: a line with a number that says where the line end after the chunk
// stands, at the beginning of b or after a line end; or the last chunk, at the end of b. JSON holds no line end of that kind,
// and an event of a stream no such line.
func findChunk(b []byte) (at int, ok bool) {
	const crlf = "\r\n"
	for {
		line, rest, whole := bytes.Cut(b[at:], []byte(crlf))
		if !whole {
			return 0, false
		}
		size, number := chunkSize(line)
		switch {
		case !number || len(line) > 8:
		case size == 0:
			if string(rest) == crlf {
				return at, true
			}
		case size <= int64(len(rest)) && bytes.HasPrefix(rest[size:], []byte(crlf)):
			return at, true
		}
		at += len(line) + len(crlf)
	}
}

// miss says that bytes are missing before the next ones; n < 0: an unknown number. It reports whether the place is still
// known: they all belong to the same body or chunk.
func (f *framing) miss(n int64) bool {
	switch f.place {
	case inBody, inChunk:
		if n > 0 && n <= f.left {
			if f.left -= n; f.left == 0 && f.place == inChunk {
				f.place = afterChunk
			}
			return true
		}
		f.chunked = f.place == inChunk
	case untilClose:
		return true
	case atHead, nowhere:
	default:
		f.chunked = true
	}
	f.lose()
	return false
}
