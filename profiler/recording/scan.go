package recording

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Damage counts the parts of a recording that could not be read.
type Damage struct {
	Frames int   // frames with a damaged body
	Bytes  int64 // bytes between frames that are not frames
	Torn   int64 // bytes of an incomplete last frame, which was being written when the recorder stopped
}

// add adds o to d.
func (d *Damage) add(o Damage) {
	d.Frames += o.Frames
	d.Bytes += o.Bytes
	d.Torn += o.Torn
}

// scanner iterates over the frames of one segment. It holds one frame at a time.
type scanner struct {
	file   io.ReaderAt
	size   int64 // of the file
	off    int64 // offset of the next frame
	damage Damage

	body []byte // of the current frame, as stored
	at   int64
	raw  []byte
	dec  *zstd.Decoder
}

// newDecoder returns a decoder that decompresses at most maxBody bytes, on the caller's goroutine.
func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderLowmem(true))
}

// next returns the next frame, for read; io.EOF after the last one. It skips damage.
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
		next, err := s.findFrame(s.off + 1)
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

// torn counts the rest of the segment as torn and ends the scan.
func (s *scanner) torn() error {
	s.damage.Torn += s.size - s.off
	s.off = s.size
	return io.EOF
}

// header reads the header of the frame at off.
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

// findFrame returns the offset of the next frame at or after off; -1 if absent.
func (s *scanner) findFrame(off int64) (int64, error) {
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

// read reads the body of a frame. A damaged body is counted and empty. The result is valid until the next call.
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
