package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// The errors of a server that breaks the bounds.
var (
	ErrTooLarge = errors.New("answers more than llmtop reads")
	errLate     = errors.New("does not answer in time")
)

// bounded is a body that may have so many bytes. It never ends early without an error.
type bounded struct {
	read io.Reader
	left int64
	ctx  context.Context
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		if n, err := b.read.Read(one[:]); n == 0 && err != nil {
			return 0, b.err(err)
		}
		return 0, ErrTooLarge
	}
	n, err := b.read.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, b.err(err)
}

func (b *bounded) err(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return plain(b.ctx, err)
}

// plain is an error of an exchange in the words of a user: without the address, which is shown beside it.
func plain(ctx context.Context, err error) error {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(context.Cause(ctx), errLate), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return errLate
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("nothing listens there: connection refused")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("broke off in the middle of an answer")
	case errors.As(err, &dns):
		return fmt.Errorf("no such host: %s", dns.Name)
	case errors.As(err, &op):
		return op.Err
	case errors.Is(err, io.EOF):
		return errors.New("closed the connection without an answer")
	}
	return err
}

// Status is the error of an answer that is not 200.
type Status struct {
	Code int
	Why  string // what the server says, at most maxWhy bytes, not sanitised
}

// NeedsKey reports whether the server wants a key, or another one.
func (s *Status) NeedsKey() bool {
	return s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden
}

// Error implements error.
func (s *Status) Error() string {
	switch {
	case s.NeedsKey():
		return "needs a key"
	case s.Why != "":
		return fmt.Sprintf("answers %d: %s", s.Code, s.Why)
	}
	return fmt.Sprintf("answers %d %s", s.Code, http.StatusText(s.Code))
}

// maxWhy is how much of a refusal is read and told, in bytes.
const maxWhy = 200

// Refusal is the error of an answer that is not 200, nil for one that is. It reads the body of a refusal.
func (a *Answer) Refusal() error {
	if a.Status == http.StatusOK {
		return nil
	}
	s := &Status{Code: a.Status}
	head, _ := io.ReadAll(io.LimitReader(a.Body, 4<<10))
	var told struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(head, &told) != nil {
		return s
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(told.Error, &inner) != nil {
		_ = json.Unmarshal(told.Error, &inner.Message)
	}
	s.Why = told.Message
	if inner.Message != "" {
		s.Why = inner.Message
	}
	s.Why = hide(s.Why, a.key)
	s.Why = strings.ToValidUTF8(s.Why[:min(len(s.Why), maxWhy)], "")
	return s
}

// Form is the error of an answer that has come and is another than what was asked for, in the words of a user.
type Form string

// Error implements error.
func (f Form) Error() string { return string(f) }

// hide takes a key out of what a server says.
func hide(words, key string) string {
	if key == "" {
		return words
	}
	return strings.ReplaceAll(words, key, "[key]")
}

// Hide takes the client's key out of what the server says.
func (c *Client) Hide(words string) string { return hide(words, c.opt.Key) }

// JSON asks for a path and reads its answer. Errors: *Status for one that is not 200; that there was none, or another than was expected.
func (c *Client) JSON(ctx context.Context, path string, into any) error {
	a, err := c.Get(ctx, path)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.JSON(into)
}

// maxJSON bounds an answer in JSON, in bytes: the slots of a server that shows prompts.
const maxJSON = 4 << 20

// JSON reads the answer. Errors: *Status for one that is not 200; Form for one that is no JSON of the expected form; that it did not come whole.
func (a *Answer) JSON(into any) error {
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
	if err := json.Unmarshal(raw, into); err != nil {
		if a.Is("text/html") {
			return Form("answers a web page")
		}
		return Form("answers what is not the JSON that was asked for")
	}
	return nil
}
