package tap

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// head is what is read of the first line and the headers of a message. Other headers, such as those with keys, are not read.
type head struct {
	method, path string // of a request, the path without its query
	status       int    // of an answer
	length       int64  // of the body; -1: not given
	chunked      bool
	coding       bool   // another transfer coding
	encoded      bool   // the body of a request is compressed
	expects      bool   // 100-continue
	group        string // value of the header with the group
	header       http.Header
}

// maxHeaders is the most headers of a message that is read, as in the proxy.
const maxHeaders = 1000

// readHead reads a whole head. false: it is malformed, or says two things about where the body ends.
func readHead(b []byte, server bool, groupHeader string) (h head, ok bool) {
	line, rest, _ := bytes.Cut(b, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if server {
		h.status, ok = statusLine(line)
		h.header = http.Header{}
	} else {
		h.method, h.path, ok = requestLine(line)
	}
	if h.length = -1; !ok {
		return h, false
	}
	for n := 0; ; n++ {
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if line = bytes.TrimSuffix(line, []byte{'\r'}); len(line) == 0 {
			return h, true
		}
		name, value, found := bytes.Cut(line, []byte{':'})
		if n == maxHeaders || !found || line[0] == ' ' || line[0] == '\t' || !h.read(string(name), value, server, groupHeader) {
			return h, false
		}
	}
}

// read reads one header.
func (h *head) read(name string, value []byte, server bool, groupHeader string) bool {
	is := func(want string) bool { return strings.EqualFold(name, want) }
	text := func() string { return string(bytes.TrimSpace(value)) }
	switch {
	case is("Content-Length"):
		n, err := strconv.ParseUint(text(), 10, 63)
		if err != nil || h.length >= 0 && h.length != int64(n) {
			return false
		}
		h.length = int64(n)
	case is("Transfer-Encoding"):
		codings := strings.Split(strings.ToLower(text()), ",")
		h.chunked = strings.TrimSpace(codings[len(codings)-1]) == "chunked"
		if h.coding = !h.chunked; server && h.chunked && len(codings) == 2 {
			h.header.Add("Content-Encoding", codings[0])
		}
	case server && (is("Content-Type") || is("Content-Encoding") || is("Server")):
		h.header.Add(name, text())
	case !server && is("Expect"):
		h.expects = true
	case !server && is("Content-Encoding"):
		h.encoded = h.encoded || text() != "" && text() != "identity"
	case !server && groupHeader != "" && is(groupHeader):
		h.group = clean.Cut(text(), answers.MaxName)
	}
	return true
}

// requestLine reads the first line of a request.
func requestLine(line []byte) (method, path string, ok bool) {
	words := bytes.Split(line, []byte{' '})
	if len(words) != 3 || len(words[0]) == 0 || len(words[1]) == 0 || !isVersion(words[2]) {
		return "", "", false
	}
	path, _, _ = strings.Cut(string(words[1]), "?")
	return string(words[0]), path, true
}

// statusLine reads the first line of an answer.
func statusLine(line []byte) (status int, ok bool) {
	word, rest, _ := bytes.Cut(line, []byte{' '})
	if !isVersion(word) || len(rest) < 3 || len(rest) > 3 && rest[3] != ' ' {
		return 0, false
	}
	status, err := strconv.Atoi(string(rest[:3]))
	return status, err == nil && status >= 100
}

// isVersion reports whether word is a version that is read.
func isVersion(word []byte) bool { return string(word) == "HTTP/1.0" || string(word) == "HTTP/1.1" }
