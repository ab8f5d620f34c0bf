package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// maxBody limits how much of an error body is read, in bytes.
const maxBody = 64 << 10

// Status is the error of an answer other than 200.
type Status struct {
	Code int
	Why  string // the server's message
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

// refusal returns the error of a refused request.
func (o *Options) refusal(r *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // a partial message is better than none
	return &Status{Code: r.StatusCode, Why: words(o.hide(body))}
}

var titles = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// words returns the message in an error body: servers wrap it in error.message, error, message or detail, and proxies
// in an HTML page.
func words(body []byte) string {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '<' {
		if title := titles.FindSubmatch(body); title != nil {
			return "an HTML page with the title " + brief(string(title[1]))
		}
		return "an HTML page"
	}
	if message, ok := fetch.Message(body); ok {
		return brief(message)
	}
	return brief(string(body))
}

// plain formats an error of encoding/json without Go types.
func plain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %s holds a %s", clean.Quote(wrong.Field), clean.Name(wrong.Value))
	}
	return err
}

// brief returns text from outside as one line of limited length.
func brief(text string) string {
	return clean.Cut(strings.Join(strings.Fields(clean.Line(text)), " "), clean.MaxMessage)
}

// broken formats a connection error for users.
func broken(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the server closed the connection in the middle of its answer")
	case errors.As(err, &op):
		return op
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errors.New(fetch.Phrase(err))
}

// quotes reports whether a message has the whole prompt, or a long piece of it.
func quotes(message, prompt string) bool {
	const piece, step = 20, 4 // bytes
	if prompt = strings.Join(strings.Fields(prompt), " "); len(prompt) < piece {
		return len(prompt) >= shortestSecret && strings.Contains(message, prompt)
	}
	for i := 0; i+piece <= len(message); i += step {
		if strings.Contains(prompt, message[i:i+piece]) {
			return true
		}
	}
	return false
}

// reason returns why a request failed, without a message of the server that quotes the prompt, unless texts are kept.
func (q *request) reason(err error) string {
	why := brief(err.Error())
	if q.want.SendText || !quotes(why, q.want.Text) {
		return why
	}
	if refused, ok := errors.AsType[*Status](err); ok {
		return (&Status{Code: refused.Code, Why: "a message that quotes the prompt"}).Error()
	}
	return "the server failed with a message that quotes the prompt"
}

// shortestSecret is the shortest key, in bytes, that is hidden. Shorter ones occur in any text.
const shortestSecret = 4

// hide removes the API key from a server's message, since servers may repeat it.
func (o *Options) hide(text []byte) []byte {
	if len(o.Key) < shortestSecret {
		return text
	}
	return bytes.ReplaceAll(text, []byte(o.Key), []byte("[key]"))
}
