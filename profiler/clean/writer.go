package clean

import (
	"cmp"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer cleans text like Text, but keeps CR LF, which a terminal in raw mode needs. Use it for a terminal, or for
// output that may reach one: of all control codes, only newlines and tabs get through. Safe for concurrent use.
type Writer struct {
	mu   sync.Mutex // guards what follows
	out  io.Writer
	part []byte // start of an incomplete character or CR LF; at most 3 bytes
	err  error  // first error of out
}

const crlf = "\r\n"

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write implements io.Writer. An escape sequence that is split between two writes loses its introducer; its rest is
// shown.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := append(w.part, p...)
	n := len(whole) - unfinished(whole)
	lines := strings.Split(string(whole[:n]), crlf)
	for i := range lines {
		lines[i] = Text(lines[i])
	}
	text := strings.Join(lines, crlf)
	w.part = append([]byte(nil), whole[n:]...)
	if text == "" {
		return len(p), nil
	}
	if _, err := io.WriteString(w.out, text); err != nil {
		w.err = cmp.Or(w.err, err)
		return 0, err
	}
	return len(p), nil
}

// Err returns the first error of writing, for those who do not check each line.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// unfinished returns how many bytes at the end of p need the bytes after them to be judged.
func unfinished(p []byte) int {
	if len(p) > 0 && p[len(p)-1] == '\r' {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
