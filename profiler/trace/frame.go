package trace

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/llmtop/llmtop/profiler/event"
)

// frameKind says what the body of a frame holds. A reader passes over kinds that it does not know.
type frameKind byte

const (
	frameEvents frameKind = 'E' // entries, compressed
	frameState  frameKind = 'S' // entries that repeat what a reader of this segment alone must know, compressed
	frameNote   frameKind = 'N' // one Note as JSON, plain
)

// The sizes of a frame.
const (
	frameSize = 60       // bytes of a frame's header
	maxBody   = 16 << 20 // bytes of a body, compressed or not, that a reader is willing to hold
	minEntry  = 2        // bytes of an entry at least
	// MaxLine is the longest line that is recorded, in bytes; longer ones are dropped and counted.
	MaxLine = 8 << 20
)

// marker begins each frame, so that a reader finds the next one after damage.
var marker = [4]byte{'L', 'T', 'F', '1'}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// frame is the header of a frame.
type frame struct {
	kind        frameKind
	stored      int        // bytes of the body in the file
	raw         int        // bytes of the body once decompressed
	first, last event.Time // of its entries, on the recorder's clock
	entries     int
	span               // of the requests that are queued in it
	sum         uint32 // CRC-32C of the body as stored
}

// span are the lowest and the highest of some request ids; 0, 0 of none.
type span struct{ low, high event.RequestID }

// reach makes the span reach to an id.
func (s *span) reach(id event.RequestID) {
	if s.high == 0 {
		s.low, s.high = id, id
	}
	s.low, s.high = min(s.low, id), max(s.high, id)
}

// holds reports whether the id lies within the span.
func (s *span) holds(id event.RequestID) bool { return s.high != 0 && s.low <= id && id <= s.high }

var errFrame = errors.New("not a frame")

// put writes the header to its place before the body.
func (f *frame) put(b []byte) {
	copy(b, marker[:])
	le.PutUint32(b[4:], uint32(f.kind))
	le.PutUint32(b[8:], uint32(f.stored))
	le.PutUint32(b[12:], uint32(f.raw))
	le.PutUint64(b[16:], uint64(f.first))
	le.PutUint64(b[24:], uint64(f.last))
	le.PutUint32(b[32:], uint32(f.entries))
	le.PutUint64(b[36:], uint64(f.low))
	le.PutUint64(b[44:], uint64(f.high))
	le.PutUint32(b[52:], f.sum)
	le.PutUint32(b[56:], crc32.Checksum(b[:56], castagnoli))
}

// parseFrame reads a header of frameSize bytes. It accepts no sizes that a reader could not hold.
func parseFrame(b []byte) (frame, error) {
	if [4]byte(b) != marker || crc32.Checksum(b[:56], castagnoli) != le.Uint32(b[56:]) {
		return frame{}, errFrame
	}
	f := frame{
		kind: frameKind(b[4]), stored: int(le.Uint32(b[8:])), raw: int(le.Uint32(b[12:])),
		first: event.Time(le.Uint64(b[16:])), last: event.Time(le.Uint64(b[24:])), entries: int(le.Uint32(b[32:])),
		span: span{event.RequestID(le.Uint64(b[36:])), event.RequestID(le.Uint64(b[44:]))}, sum: le.Uint32(b[52:]),
	}
	if f.stored > maxBody || f.raw > maxBody || f.entries > f.raw/minEntry {
		return frame{}, errFrame
	}
	return f, nil
}

// block gathers entries until they are written as one frame.
type block struct {
	frame
	body    []byte
	prev    event.Time
	several bool // entries name their source
}

// add appends an entry: the time since the one before, the number of its source if there are several, the length of the line, the line.
func (b *block) add(at event.Time, source int, line []byte) {
	if b.entries == 0 {
		b.first, b.last, b.prev = at, at, at
	}
	b.body = binary.AppendVarint(b.body, int64(at-b.prev))
	if b.several {
		b.body = binary.AppendUvarint(b.body, uint64(source))
	}
	b.body = binary.AppendUvarint(b.body, uint64(len(line)))
	b.body = append(b.body, line...)
	b.first, b.last, b.prev = min(b.first, at), max(b.last, at), at
	b.entries++
}

// reset empties the block and keeps its memory.
func (b *block) reset() { *b = block{body: b.body[:0], several: b.several} }

// entries walks through the body of a frame.
type entries struct {
	body    []byte
	at      event.Time
	left    int  // entries that the frame's header tells of
	several bool // they name their source
}

// next returns the next entry; ok is false at the end of the body, and where it is not well formed: then body is not empty.
func (b *entries) next() (at event.Time, source int, line []byte, ok bool) {
	d, n := binary.Varint(b.body)
	if n <= 0 || b.left <= 0 {
		return 0, 0, nil, false
	}
	if b.several {
		number, m := binary.Uvarint(b.body[n:])
		if m <= 0 || number >= MaxSources {
			return 0, 0, nil, false
		}
		source, n = int(number), n+m
	}
	size, m := binary.Uvarint(b.body[n:])
	if m <= 0 || size > uint64(len(b.body)-n-m) {
		return 0, 0, nil, false
	}
	begin := n + m
	end := begin + int(size)
	b.at += event.Time(d)
	b.left--
	line, b.body = b.body[begin:end:end], b.body[end:]
	return b.at, source, line, true
}
