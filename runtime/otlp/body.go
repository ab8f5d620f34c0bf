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

// maxBody bounds an export, also once it is unpacked, and maxReading all of those that are being read, in bytes.
const (
	maxBody    = 16 << 20
	maxReading = 8 * maxBody
)

var (
	errBusy     = errors.New("too much at a time: the exports that are being read hold 128 MiB, send again")
	errTooLarge = errors.New("too large: an export may have 16 MiB, unpacked")
	errEncoding = errors.New("bodies may be packed by gzip")
)

// holding is a body, as far as it was read. It counts against what all bodies may hold, so that who is slow takes no more than he has sent.
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

// release is to be called when nobody looks at the body any more.
func (h *holding) release() { h.all.Add(-int64(h.Len())) }

// read reads the body of a request and unpacks it. It never holds more than maxBody, whatever the body would become.
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
	n, err := io.Copy(struct{ io.Writer }{h}, io.LimitReader(from, maxBody+1)) // not by ReadFrom, which would not count
	if n > maxBody {
		return errTooLarge
	}
	return unreadable(err)
}

// unreadable tells bodies that are too large from others that cannot be read.
func unreadable(err error) error {
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return errTooLarge
	}
	if err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}
