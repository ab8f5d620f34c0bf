package fetch

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// Errors of a server that exceeds the limits.
var (
	ErrTooLarge = errors.New("response too large")
	errTimeout  = errors.New("no response in time")
)

// describedBody is a body whose errors are texts for users.
type describedBody struct {
	io.Reader
	ctx context.Context
}

// Read implements io.Reader.
func (b describedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = describeError(b.ctx, err)
	}
	return n, err
}

// refusal is why a response is not used, as a text for users.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// describeError returns an error as a text for users, without the address, which is shown next to it.
func describeError(ctx context.Context, err error) error {
	var op *net.OpError
	var dns *net.DNSError
	var refused refusal
	var large *http.MaxBytesError
	switch {
	case errors.Is(context.Cause(ctx), errTimeout), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &large):
		return ErrTooLarge
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("response truncated")
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("decompress response: %w", err)
	case errors.As(err, &dns):
		return fmt.Errorf("no such host: %s", dns.Name)
	case errors.As(err, &op):
		return op.Err
	case errors.Is(err, io.EOF):
		return errors.New("connection closed without a response")
	}
	return errors.New(Phrase(err))
}

// Phrase returns what is wrong with an HTTP exchange, other than its connection, in words of its own: errors of net/http
// quote what they cannot read, which may hold a prompt or an answer.
func Phrase(err error) string {
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		host        x509.HostnameError
		record      tls.RecordHeaderError
		timeout     net.Error
	)
	switch {
	case errors.As(err, &authority):
		return "the certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "the certificate is for another host"
	case errors.As(err, &certificate):
		return "the certificate is not valid"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not speak TLS"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no response in time"
	case strings.Contains(err.Error(), "server response headers exceeded"), errors.Is(err, ErrTooLarge):
		return "response header too large"
	}
	for _, known := range malformed {
		if strings.Contains(err.Error(), known) {
			return "the server does not answer in HTTP: " + known
		}
	}
	return "the connection broke, or the response is not HTTP"
}

// malformed is how errors of net/http begin that have no type. What follows quotes the response.
var malformed = []string{
	"malformed HTTP", "malformed MIME header", "malformed chunked encoding", "invalid byte in chunk length", "bad Content-Length",
	"unsupported transfer encoding",
}

// StatusError is the error for a response whose status is not 200.
type StatusError struct {
	Code    int
	Message string // from the server: one line of at most maxMessage characters
}

// HasStatus reports whether err is a *StatusError, with one of the codes if some are given.
func HasStatus(err error, codes ...int) bool {
	refused, ok := errors.AsType[*StatusError](err)
	return ok && (len(codes) == 0 || slices.Contains(codes, refused.Code))
}

// NeedsKey reports whether the server requires an API key, or another one.
func NeedsKey(err error) bool { return HasStatus(err, http.StatusUnauthorized, http.StatusForbidden) }

// Unsupported reports whether the server does not have an endpoint.
func Unsupported(err error) bool {
	return HasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

// Error implements error.
func (s *StatusError) Error() string {
	switch {
	case NeedsKey(s):
		return "API key required"
	case s.Message != "":
		return fmt.Sprintf("HTTP %d: %s", s.Code, s.Message)
	}
	return fmt.Sprintf("HTTP %d %s", s.Code, http.StatusText(s.Code))
}

// maxMessage limits the part of a server's message that is shown, in characters.
const maxMessage = 200

// Refusal returns a *StatusError if the status is not 200, and nil otherwise. It reads the body of such a response.
func (a *Response) Refusal() error {
	if a.Status == http.StatusOK {
		return nil
	}
	s := &StatusError{Code: a.Status}
	head, _ := io.ReadAll(io.LimitReader(a.Body, 4<<10))
	s.Message, _ = Message(head)
	s.Message = clean.Cut(redact(s.Message, a.key), maxMessage)
	return s
}

// Message returns the message in an error body: servers wrap it in error.message, error, message or detail. ok is false if
// the body is not JSON.
func Message(body []byte) (message string, ok bool) {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return "", false
	}
	return find(v, 0), true
}

// find returns the message in a JSON value.
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

// FormatError is the error for a response that has another format than requested, as a text for users.
type FormatError string

// Error implements error.
func (f FormatError) Error() string { return string(f) }

// redact removes a key from a server's message.
func redact(message, key string) string {
	if key == "" {
		return message
	}
	return strings.ReplaceAll(message, key, "[key]")
}

// Explain returns an error as a text for users: rejected if the server wants another key, missing if it wants one.
func (c *Client) Explain(err error, rejected, missing string) string {
	switch {
	case NeedsKey(err) && c.opt.Key != "":
		return rejected
	case NeedsKey(err):
		return missing + ": set --api-key-file FILE or LLMTOP_API_KEY"
	}
	return redact(err.Error(), c.opt.Key)
}

// JSON requests a path and decodes its response. Errors: those of Get and Response.JSON.
func (c *Client) JSON(ctx context.Context, path string, into any) error {
	return c.decode(ctx, http.MethodGet, path, nil, into)
}

// Ask posts a question as JSON, for what a server reports in no other way, and decodes the response like JSON.
func (c *Client) Ask(ctx context.Context, path string, question, into any) error {
	content, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return c.decode(ctx, http.MethodPost, path, content, into)
}

func (c *Client) decode(ctx context.Context, method, path string, content []byte, into any) error {
	a, err := c.send(ctx, method, path, content)
	if err != nil {
		return err
	}
	defer a.Close()
	err = a.JSON(into)
	c.malformed.Add(int64(a.malformed))
	return err
}

// Malformed returns the number of implausible numbers in JSON responses since the last call.
func (c *Client) Malformed() int { return int(c.malformed.Swap(0)) }

// maxJSON limits a JSON response, in bytes: the largest are slots of a server that includes prompts.
const maxJSON = 4 << 20

// JSON decodes the response. It omits implausible numbers and counts them. Errors: *StatusError if the status is not 200;
// FormatError if it is not JSON of the expected form; ErrTooLarge; the response was incomplete.
func (a *Response) JSON(into any) error {
	if err := a.Refusal(); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(a.Body, maxJSON+1))
	switch {
	case err != nil:
		return err
	case len(raw) > maxJSON:
		return ErrTooLarge
	}
	err = clean.UnmarshalJSON(raw, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number ") {
		a.malformed++ // a number does not fit its type; the other fields are decoded
		err = nil
	}
	a.malformed += event.Refuse(reflect.ValueOf(into))
	if err != nil {
		if a.Is("text/html") {
			return FormatError("response is a web page")
		}
		return FormatError("response is not the expected JSON")
	}
	return nil
}
