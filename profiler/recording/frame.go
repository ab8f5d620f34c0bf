package recording

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/llmtop/llmtop/profiler/event"
)

// frameKind is the kind of a frame's body. Readers skip unknown kinds.
type frameKind byte

const (
	frameEvents frameKind = 'E' // entries, compressed
	frameState  frameKind = 'S' // entries with the state at the start of the segment, compressed
	frameNote   frameKind = 'N' // one Note as JSON, plain
)

// The sizes of a frame.
const (
	frameSize = 60       // bytes of a frame's header
	maxBody   = 16 << 20 // most bytes of a body that a reader accepts, compressed or not
	minEntry  = 2        // smallest entry, in bytes
	// MaxLine is the longest line that is recorded, in bytes; longer ones are dropped and counted.
	MaxLine = 8 << 20
)

// marker starts each frame, so that a reader finds the next frame after damage.
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
	first, last event.Time // times of its entries, on the recorder's clock
	entries     int
	idRange            // of the requests queued in it
	sum         uint32 // CRC-32C of the body as stored
}

// idRange is a range of request ids; 0, 0 if empty.
type idRange struct{ low, high event.RequestID }

// extend extends the range to an id.
func (s *idRange) extend(id event.RequestID) {
	if s.high == 0 {
		s.low, s.high = id, id
	}
	s.low, s.high = min(s.low, id), max(s.high, id)
}

// contains reports whether the id lies in the range.
func (s *idRange) contains(id event.RequestID) bool {
	return s.high != 0 && s.low <= id && id <= s.high
}

var errFrame = errors.New("not a frame")

// put encodes the header into b.
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

// parseFrame parses a header of frameSize bytes. It rejects sizes beyond the limits of readers and implausible times.
func parseFrame(b []byte) (frame, error) {
	if [4]byte(b) != marker || crc32.Checksum(b[:56], castagnoli) != le.Uint32(b[56:]) {
		return frame{}, errFrame
	}
	f := frame{
		kind: frameKind(b[4]), stored: int(le.Uint32(b[8:])), raw: int(le.Uint32(b[12:])),
		first: event.Time(le.Uint64(b[16:])), last: event.Time(le.Uint64(b[24:])), entries: int(le.Uint32(b[32:])),
		idRange: idRange{event.RequestID(le.Uint64(b[36:])), event.RequestID(le.Uint64(b[44:]))}, sum: le.Uint32(b[52:]),
	}
	if f.stored > maxBody || f.raw > maxBody || f.entries > f.raw/minEntry || !f.first.Plausible() || !f.last.Plausible() {
		return frame{}, errFrame
	}
	return f, nil
}

// block collects entries until they are written as one frame.
type block struct {
	frame
	body        []byte
	prev        event.Time
	multiEngine bool // entries have an engine number
}

// add appends an entry: time since the previous one, engine number (recordings of several engines only), length of the
// line, line.
func (b *block) add(at event.Time, engine int, line []byte) {
	if b.entries == 0 {
		b.first, b.last, b.prev = at, at, at
	}
	b.body = binary.AppendVarint(b.body, int64(at-b.prev))
	if b.multiEngine {
		b.body = binary.AppendUvarint(b.body, uint64(engine))
	}
	b.body = binary.AppendUvarint(b.body, uint64(len(line)))
	b.body = append(b.body, line...)
	b.first, b.last, b.prev = min(b.first, at), max(b.last, at), at
	b.entries++
}

// addEvent appends the line of an event. A queued request extends the range of ids, by which FindRequest finds it.
func (b *block) addEvent(e *event.Event, at event.Time, engine int, line []byte) {
	b.add(at, engine, line)
	if e.Kind == event.KindRequest && e.State == event.StateQueued && e.Req != 0 {
		b.extend(e.Req)
	}
}

// reset empties the block and keeps its memory.
func (b *block) reset() { *b = block{body: b.body[:0], multiEngine: b.multiEngine} }

// entries iterates over the body of a frame.
type entries struct {
	body        []byte
	at          event.Time
	remaining   int  // entries left, by the frame's header
	multiEngine bool // entries have an engine number
}

// next returns the next entry. ok is false at the end of the body and at a malformed entry; in the second case body is
// not empty.
func (b *entries) next() (at event.Time, engine int, line []byte, ok bool) {
	d, n := binary.Varint(b.body)
	if n <= 0 || b.remaining <= 0 {
		return 0, 0, nil, false
	}
	if b.multiEngine {
		number, m := binary.Uvarint(b.body[n:])
		if m <= 0 || number >= MaxEngines {
			return 0, 0, nil, false
		}
		engine, n = int(number), n+m
	}
	size, m := binary.Uvarint(b.body[n:])
	if m <= 0 || size > uint64(len(b.body)-n-m) {
		return 0, 0, nil, false
	}
	begin := n + m
	end := begin + int(size)
	at = event.Time(event.Add(int64(b.at), d))
	if !at.Plausible() {
		return 0, 0, nil, false
	}
	b.at = at
	b.remaining--
	line, b.body = b.body[begin:end:end], b.body[end:]
	return b.at, engine, line, true
}
