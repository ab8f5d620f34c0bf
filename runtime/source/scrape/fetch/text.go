package fetch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxWrappers limits how often a text is wrapped.
const maxWrappers = 3

// Text returns a reader of the body as text. Some servers wrap a text with several lines: it is a JSON string, or the strings
// in a JSON object or array, or what Python prints of bytes. Errors: those of the body.
func (a *Response) Text() (io.Reader, error) {
	r := bufio.NewReaderSize(a.Body, 512) // the scanner's buffer is larger, and is read into past this one
	head, _ := r.Peek(64)
	head = bytes.TrimLeft(head, "\ufeff \t\r\n")
	if len(head) == 0 || !bytes.ContainsAny(head[:1], `"[{b'`) || head[0] == 'b' && !isBytes(head) {
		return r, nil
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return strings.NewReader(unwrap(string(raw))), nil
}

// isBytes reports whether a text begins as Python prints bytes.
func isBytes(text []byte) bool { return len(text) > 1 && (text[1] == '"' || text[1] == '\'') }

// unescape reads the escapes of Python's bytes that texts of metrics have.
var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\'`, `'`, `\"`, `"`)

// unwrap returns the text in its wrappers; a text as it is if it has none.
func unwrap(text string) string {
	for range maxWrappers {
		var v any
		plain := strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
		switch {
		case len(plain) > 2 && plain[0] == 'b' && isBytes([]byte(plain)) && plain[len(plain)-1] == plain[1]:
			text = unescape.Replace(plain[2 : len(plain)-1])
		case json.Unmarshal([]byte(plain), &v) == nil:
			text = strings.Join(texts(v, nil, 0), "\n")
		default:
			return text
		}
	}
	return text
}

// texts appends the strings in a JSON value, but for names.
func texts(v any, to []string, depth int) []string {
	switch v := v.(type) {
	case string:
		return append(to, v)
	case []any:
		for _, one := range v[:min(len(v), maxTexts)] {
			if depth < maxWrappers {
				to = texts(one, to, depth+1)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if depth < maxWrappers && len(to) < maxTexts {
				to = texts(v[name], to, depth+1)
			}
		}
	}
	return to
}

// maxTexts limits the strings of a JSON value: the lines of a text.
const maxTexts = 200_000
