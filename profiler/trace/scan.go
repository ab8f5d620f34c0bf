package trace

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Damage is what of a recording could not be read.
type Damage struct {
	Frames int   // whose body is not what was written
	Bytes  int64 // between frames that are no frames
	Torn   int64 // bytes of a last frame that is not complete: what was being written when the recorder stopped
}

// add sums damage up.
func (d *Damage) add(o Damage) {
	d.Frames += o.Frames
	d.Bytes += o.Bytes
	d.Torn += o.Torn
}

// scanner walks through the frames of one segment. It holds one frame at a time, whatever the file says.
type scanner struct {
	file   io.ReaderAt
	size   int64 // of the file
	off    int64 // where the next frame begins
	damage Damage

	body []byte // of the frame that next has returned, not yet read
	at   int64
	raw  []byte
	dec  *zstd.Decoder
}

// newDecoder decompresses no more than a frame may hold, on the caller's goroutine.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderLowmem(true))
}

// next returns the next frame, whose body read then reads; io.EOF after the last one. It steps over damage.
func (s *scanner) next() (frame, error) {
	for {
		f, err := s.header(s.off)
		if err == nil {
			end := s.off + frameSize + int64(f.stored)
			if end > s.size {
				return f, s.torn()
			}
			s.at, s.off = s.off+frameSize, end
			return f, nil
		}
		if !errors.Is(err, errFrame) {
			return frame{}, err
		}
		if s.size-s.off < frameSize {
			return frame{}, s.torn()
		}
		next, err := s.find(s.off + 1)
		if err != nil {
			return frame{}, err
		}
		if next < 0 {
			return frame{}, s.torn()
		}
		s.damage.Bytes += next - s.off
		s.off = next
	}
}

// torn ends the walk with what is left.
func (s *scanner) torn() error {
	s.damage.Torn += s.size - s.off
	s.off = s.size
	return io.EOF
}

// header reads the header of a frame.
func (s *scanner) header(off int64) (frame, error) {
	var b [frameSize]byte
	if s.size-off < frameSize {
		return frame{}, errFrame
	}
	if n, err := s.file.ReadAt(b[:], off); n < frameSize {
		return frame{}, err
	}
	return parseFrame(b[:])
}

// find looks for a frame from off on; -1 if there is none.
func (s *scanner) find(off int64) (int64, error) {
	window := make([]byte, 64<<10)
	for s.size-off >= frameSize {
		n, err := s.file.ReadAt(window[:min(int64(len(window)), s.size-off)], off)
		if n < frameSize {
			return -1, err
		}
		for i := 0; ; i++ {
			j := bytes.Index(window[i:n], marker[:])
			if j < 0 {
				break
			}
			i += j
			if _, err := s.header(off + int64(i)); err == nil {
				return off + int64(i), nil
			}
		}
		off += int64(n - len(marker) + 1)
	}
	return -1, nil
}

// read reads the body of a frame. A damaged one is counted and empty. The body is valid until the next call.
func (s *scanner) read(f *frame) ([]byte, error) {
	if cap(s.body) < f.stored {
		s.body = make([]byte, f.stored)
	}
	s.body = s.body[:f.stored]
	if n, err := s.file.ReadAt(s.body, s.at); n < f.stored {
		return nil, err
	}
	if crc32.Checksum(s.body, castagnoli) != f.sum {
		s.damage.Frames++
		return nil, nil
	}
	if f.kind == frameNote {
		return s.body, nil
	}
	raw, err := s.dec.DecodeAll(s.body, s.raw[:0])
	if err != nil || len(raw) != f.raw {
		s.damage.Frames++
		return nil, nil
	}
	s.raw = raw
	return raw, nil
}
