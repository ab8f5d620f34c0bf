package otlp

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxBody bounds an export, also once it is unpacked, in bytes.
const maxBody = 16 << 20

var (
	errTooLarge = errors.New("too large: an export may have 16 MiB, unpacked")
	errEncoding = errors.New("bodies may be packed by gzip")
)

// readBody reads the body of a request and unpacks it. It never holds more than maxBody, whatever the body would become.
func readBody(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	if req.ContentLength > maxBody {
		return nil, errTooLarge
	}
	from := io.Reader(http.MaxBytesReader(w, req.Body, maxBody))
	switch req.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return nil, unreadable(err)
		}
		from = unpacked
	default:
		return nil, errEncoding
	}
	var body bytes.Buffer
	n, err := io.Copy(&body, io.LimitReader(from, maxBody+1))
	if n > maxBody {
		return nil, errTooLarge
	}
	return body.Bytes(), unreadable(err)
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
