package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The limits of a zstd frame. Readers take what exceeds them for damage.
const (
	maxFrame  = 16 << 20 // bytes, compressed or not
	maxBlocks = 256      // blocks, 128 KiB each but the last: twice as many as maxFrame needs
	maxNotes  = 8 << 10  // bytes of a frame of notes, uncompressed: opening a recording reads only frames up to this size
	maxHeader = 64 << 10 // bytes of the frame of a header, uncompressed
)

// magic starts each zstd frame, so that a reader finds the next frame after damage.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// frame is the place of a zstd frame in a segment.
type frame struct {
	off, end int64
	size     int // bytes of its lines; 0: it does not say
}

// Damage counts the parts of a recording that could not be read.
type Damage struct {
	Frames int   // frames that their checksum refutes
	Lines  int   // lines that are not of a recording
	Bytes  int64 // bytes between frames that are not frames
	Torn   int64 // bytes of an incomplete last frame, which was being written when the recorder stopped
}

// scanner reads the frames of one segment. It holds one frame at a time.
type scanner struct {
	file   io.ReaderAt
	size   int64 // of the file
	off    int64 // offset of the next frame
	damage Damage

	stored, lines []byte // of the current frame
	dec           *zstd.Decoder
}

// newDecoder returns a decoder that decompresses at most maxFrame bytes, on the caller's goroutine.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderLowmem(true))
}

// next returns the next frame, for read; io.EOF after the last one. It skips damage.
func (s *scanner) next() (frame, error) {
	for s.off < s.size {
		f, err := s.measure(s.off)
		ends := false
		if err == nil {
			ends, err = s.endsAt(f)
		}
		if err != nil && !errors.Is(err, errFrame) {
			return f, err
		}
		if ends {
			s.off = f.end
			return f, nil
		}
		next, err := s.find(s.off + 1)
		if err != nil {
			return f, err
		}
		if next < 0 {
			s.damage.Torn += s.size - s.off
			s.off = s.size
			break
		}
		s.damage.Bytes += next - s.off
		s.off = next
	}
	return frame{}, io.EOF
}

var errFrame = errors.New("not a frame")

// measure returns the place of the frame at off by the sizes of its blocks.
func (s *scanner) measure(off int64) (frame, error) {
	var b [zstd.HeaderMaxSize]byte
	n, err := s.file.ReadAt(b[:min(zstd.HeaderMaxSize, s.size-off)], off)
	if n == 0 {
		return frame{}, err
	}
	var h zstd.Header
	if h.Decode(b[:n]) != nil || h.Skippable || !h.HasCheckSum || h.FrameContentSize > maxFrame {
		return frame{}, errFrame
	}
	end, last := off+int64(h.HeaderSize), false
	for range maxBlocks {
		if n, err := s.file.ReadAt(b[:min(4, max(s.size-end, 0))], end); n < 4 { // of a block, 3 bytes and more follow
			if err == nil || err == io.EOF {
				err = errFrame
			}
			return frame{}, err
		}
		block := binary.LittleEndian.Uint32(b[:]) & (1<<24 - 1)
		size := int64(block >> 3)
		switch block >> 1 & 3 {
		case 1: // one byte, repeated
			size = 1
		case 3: // reserved
			return frame{}, errFrame
		}
		end += 3 + size
		if last = block&1 != 0; last {
			break
		}
	}
	end += 4 // the checksum
	if !last || end > s.size || end-off > maxFrame {
		return frame{}, errFrame
	}
	return frame{off, end, int(h.FrameContentSize)}, nil
}

// endsAt reports whether a frame ends where the sizes of its blocks say: another one or the end of the file follows. If
// something else does, its checksum decides.
func (s *scanner) endsAt(f frame) (bool, error) {
	var b [4]byte
	n := min(4, s.size-f.end)
	if m, err := s.file.ReadAt(b[:n], f.end); int64(m) < n {
		return false, err
	}
	if bytes.Equal(b[:n], magic[:n]) {
		return true, nil
	}
	before := s.damage
	_, ok, err := s.read(f)
	s.damage = before
	return ok, err
}

// find returns the offset of the next complete frame at or after off; -1 if absent.
func (s *scanner) find(off int64) (int64, error) {
	window := make([]byte, 64<<10)
	for s.size-off > int64(len(magic)) {
		n, err := s.file.ReadAt(window[:min(int64(len(window)), s.size-off)], off)
		if n <= len(magic) {
			return -1, err
		}
		for i := 0; ; i++ {
			j := bytes.Index(window[i:n], magic)
			if j < 0 {
				break
			}
			i += j
			if _, err := s.measure(off + int64(i)); err == nil {
				return off + int64(i), nil
			}
		}
		off += int64(n - len(magic) + 1)
	}
	return -1, nil
}

// read returns the lines of a frame, valid until the next call. A damaged one is counted; ok is false.
func (s *scanner) read(f frame) (lines []byte, ok bool, err error) {
	n := int(f.end - f.off)
	if cap(s.stored) < n {
		s.stored = make([]byte, n)
	}
	s.stored = s.stored[:n]
	if m, err := s.file.ReadAt(s.stored, f.off); m < n {
		return nil, false, err
	}
	if cap(s.lines) < f.size {
		s.lines = make([]byte, 0, f.size)
	}
	lines, err = s.dec.DecodeAll(s.stored, s.lines[:0])
	if err != nil {
		s.damage.Frames++
		return nil, false, nil
	}
	s.lines = lines
	return lines, true, nil
}
