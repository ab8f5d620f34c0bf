package proxy

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxDecoded bounds what one compressed answer may unfold to, in bytes. Nothing of it is kept; this is about the time that it takes.
const maxDecoded = 1 << 30

var (
	errEncoding = errors.New("it is compressed in a way that is not understood")
	errUnfolds  = errors.New("it unfolds to more than 1 GiB")
)

// decoded is what the bytes of an answer stand for, given how they are compressed. Each read of the result that finds bytes has read no
// more of from than it had to.
func decoded(from io.Reader, header http.Header) (io.Reader, error) {
	encodings := header.Values("Content-Encoding")
	if len(encodings) > 1 {
		return nil, errEncoding
	}
	if len(encodings) == 0 {
		return from, nil
	}
	var (
		r   io.Reader
		err error
	)
	switch strings.ToLower(strings.TrimSpace(encodings[0])) {
	case "", "identity":
		return from, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(from)
	case "deflate":
		r, err = zlib.NewReader(from)
	case "zstd":
		r, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	default:
		err = errEncoding
	}
	if err != nil {
		return nil, err
	}
	return &unfolding{r, maxDecoded}, nil
}

// unfolding is a reader with a bound on its length.
type unfolding struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (u *unfolding) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	if u.left -= n; u.left < 0 {
		return 0, errUnfolds
	}
	return n, err
}
