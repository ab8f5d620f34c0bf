package clean

import (
	"encoding/json"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// NewEncoder returns an encoder that writes the same documents as encoding/json, in Safe characters only: other
// characters, which JSON allows in strings, are written as \uXXXX. It does not escape HTML.
func NewEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaper{w})
	e.SetEscapeHTML(false)
	return e
}

// escaper escapes JSON on its way to out. json.Encoder writes each value in one piece, so that no character is split.
type escaper struct{ out io.Writer }

// Write implements io.Writer.
func (e escaper) Write(p []byte) (int, error) {
	if _, err := e.out.Write(escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// AppendEscape appends a character as JSON strings escape it: \uXXXX, or a surrogate pair of these.
func AppendEscape(dst []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return AppendEscape(AppendEscape(dst, high), low)
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// escape returns a JSON document with its unsafe characters escaped, or src itself if there are none. Outside strings
// JSON has only ASCII, and of the control characters only layout.
func escape(src []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(src); {
		if c := src[i]; c < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(src[i:])
		if bad := r == utf8.RuneError && n == 1; bad || !Safe(r) {
			out = append(out, src[done:i]...)
			out = AppendEscape(out, r)
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return src
	}
	return append(out, src[done:]...)
}
