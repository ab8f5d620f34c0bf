package otlp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// maxBody limits one export, compressed and decompressed, in bytes. maxReading limits all exports being read at once.
const (
	maxBody    = 16 << 20
	maxReading = 8 * maxBody
)

var (
	errBusy     = errors.New("too busy: exports being read hold 128 MiB, retry later")
	errTooLarge = errors.New("export too large: limit 16 MiB after decompression")
	errEncoding = errors.New("unsupported Content-Encoding: use gzip or none")
)

// holding is the part of a body read so far. It counts its bytes against maxReading, so that a slow sender uses only
// what it has sent.
type holding struct {
	bytes.Buffer
	all *atomic.Int64
}

// Write implements io.Writer.
func (h *holding) Write(p []byte) (int, error) {
	if h.all.Add(int64(len(p))) > maxReading {
		h.all.Add(-int64(len(p)))
		return 0, errBusy
	}
	return h.Buffer.Write(p)
}

// release returns the bytes to the common limit. Call it when the body is no longer used.
func (h *holding) release() { h.all.Add(-int64(h.Len())) }

// read reads and decompresses the body of a request. It never holds more than maxBody, however far the body expands.
func (h *holding) read(w http.ResponseWriter, req *http.Request) error {
	if req.ContentLength > maxBody {
		return errTooLarge
	}
	from := io.Reader(http.MaxBytesReader(w, req.Body, maxBody))
	switch req.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return unreadable(err)
		}
		from = unpacked
	default:
		return errEncoding
	}
	n, err := io.Copy(struct{ io.Writer }{h}, io.LimitReader(from, maxBody+1)) // io.Copy must use Write, which counts, and not ReadFrom
	if n > maxBody {
		return errTooLarge
	}
	return unreadable(err)
}

// unreadable returns errTooLarge for bodies over the limit, and a wrapped error for other failures.
func unreadable(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return errTooLarge
	}
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}
