package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
)

// The bounds of what is kept of a server's words, in bytes.
const (
	maxBody  = 64 << 10 // read of the body of a refusal
	maxWords = 300      // of a message
)

// Status is the error of a server that answered with something else than 200.
type Status struct {
	Code int
	Why  string // in the server's words
}

// Error implements error.
func (s *Status) Error() string {
	text := fmt.Sprintf("the server answered %d", s.Code)
	if name := http.StatusText(s.Code); name != "" {
		text += " (" + name + ")"
	}
	if s.Why == "" {
		return text
	}
	return text + ": " + s.Why
}

// refusal reads why a server refused.
func refusal(r *http.Response, key secret) error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // half of the reason is better than none
	return &Status{Code: r.StatusCode, Why: words(key.hide(body))}
}

var titles = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// words finds the message in the body of a refusal: servers wrap it in error.message, error, message or detail, and proxies in a page.
func words(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '<' {
		if title := titles.FindSubmatch(body); title != nil {
			return "an HTML page with the title " + clean(string(title[1]))
		}
		return "an HTML page"
	}
	var v any
	if json.Unmarshal(body, &v) == nil {
		if message := find(v, 0); message != "" {
			return clean(message)
		}
	}
	return clean(string(body))
}

// find looks for the message in a JSON value.
func find(v any, depth int) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 && depth < 4 {
			return find(v[0], depth+1)
		}
	case map[string]any:
		for _, name := range []string{"error", "message", "detail", "msg"} {
			if inner, ok := v[name]; ok && depth < 4 {
				if text := find(inner, depth+1); text != "" {
					return text
				}
			}
		}
	}
	return ""
}

// clean makes one line of bounded length of a text from outside.
func clean(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(text) > maxWords {
		return strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}

// broken is an error of the connection in the words of a user.
func broken(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the server closed the connection in the middle of its answer")
	case errors.As(err, &op):
		return op
	}
	if _, why, ok := strings.Cut(err.Error(), "transport connection broken: "); ok {
		return errors.New("the server does not answer in HTTP: " + clean(why))
	}
	return err
}

// secret is an API key.
type secret string

// shortestSecret is the shortest key, in bytes, that is looked for in texts. Shorter ones are no secrets, and stand in every text.
const shortestSecret = 4

// hide takes the key out of what a server says, since servers are known to repeat it.
func (s secret) hide(text []byte) []byte {
	if len(s) < shortestSecret {
		return text
	}
	return bytes.ReplaceAll(text, []byte(s), []byte("[key]"))
}
