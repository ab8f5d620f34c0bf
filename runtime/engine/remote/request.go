package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// request is a request in progress. Its fields belong to its own goroutine.
type request struct {
	client *Client
	id     event.RequestID
	want   engine.Request
	began  event.Time // before connecting

	x      exchange
	queued sync.Once  // guards the queued event
	sent   event.Time // set with the queued event
	answer answers.Answer
	text   strings.Builder
	ids    []int32
}

// errUnended means that an answer stopped without a finish reason.
var errUnended = errors.New("the answer stopped without a finish reason")

func newRequest(c *Client, id event.RequestID, want engine.Request) *request {
	q := &request{client: c, id: id, want: want}
	q.answer.Token = q.token
	return q
}

// run makes the request and emits its events until it ends.
func (q *request) run(ctx context.Context, body []byte) engine.Result {
	c := q.client
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.opt.Silence, func() { cancel(errSilent) })
	defer watch.Stop()
	err := q.exchange(ctx, body, func() { watch.Reset(c.opt.Silence) })
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return q.finish(err)
}

// exchange sends the request and reads the answer. It calls alive whenever data arrives.
func (q *request) exchange(ctx context.Context, body []byte, alive func()) error {
	c := q.client
	q.x.written = q.queue
	if err := c.send(ctx, &q.x, http.MethodPost, c.server.api.path(), body); err != nil {
		return err
	}
	defer q.x.Body.Close()
	alive()
	if q.x.StatusCode != http.StatusOK {
		return c.opt.refusal(q.x.Response)
	}
	dialect := c.server.api.dialect()
	if kind, _, err := mime.ParseMediaType(q.x.Header.Get("Content-Type")); err == nil && kind == "application/json" && !dialect.Lines {
		return errors.New("the server does not stream: it answered with one JSON document")
	}
	return q.read(answers.NewStream(dialect, answers.Limited(watched{q.x.Body, alive}, maxStream, errLongAnswer), q.x.read))
}

// watched is a reader that calls alive for each read that returns bytes, also for comments and parts of messages.
type watched struct {
	io.Reader
	alive func()
}

// Read implements io.Reader.
func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.alive()
	}
	return n, err
}

// queue emits the queued event, once the time of sending is set. It may be called from any goroutine.
func (q *request) queue() {
	q.queued.Do(func() {
		var wrote bool
		if q.sent, wrote = q.x.sent(); !wrote {
			q.sent = q.began
		}
		info := &event.Request{Group: q.want.Group, Label: q.want.Label, MaxTokens: q.want.MaxTokens, Probe: q.want.Probe, ColdLater: q.client.server.api.dialect().Lines}
		if q.want.SendText {
			info.Prompt = q.want.Text
		}
		q.emit(event.Event{Kind: event.KindRequest, At: q.sent, State: event.StateQueued, Data: info})
	})
}

func (q *request) emit(e event.Event) {
	e.Req, e.Layer = q.id, -1
	q.client.sink.Emit(e)
}

// Limits of one answer, so that an endless answer cannot fill the memory. Long outputs have some 100,000 tokens, each
// less than 1 KB with everything sent around it.
const (
	maxStream = 512 << 20 // bytes
	maxTokens = 1 << 18   // unless the request allows more
	maxText   = 1 << 20   // bytes of text kept in a Result
	maxPiece  = 64 << 10  // bytes of text in one event
)

// errLongLine and errLongAnswer mean that answers.MaxMessage or maxStream was exceeded.
var (
	errLongLine   = errors.New("the server sent a line of more than 8 MiB")
	errLongAnswer = errors.New("the server sent an answer of more than 512 MiB")
)

// read reads the answer to its end.
func (q *request) read(in *answers.Reader) error {
	in.Texts = true
	for {
		m, err := in.Next()
		switch {
		case err == io.EOF && q.answer.Sum.Why == "":
			return errUnended
		case err == io.EOF:
			return nil
		case errors.Is(err, answers.ErrLong):
			return errLongLine
		case errors.Is(err, errLongAnswer):
			return err
		case err != nil && m == nil:
			return broken(err)
		case m.Failed:
			why := words(q.client.opt.hide(m.Failure))
			return fmt.Errorf("the server failed: %s", cmp.Or(why, m.Kind, "an error without a message"))
		case m.Wrong != nil:
			return fmt.Errorf("read answer: %w", plain(m.Wrong))
		}
		q.queue()
		q.answer.Add(m)
		if most := max(maxTokens, 2*q.want.MaxTokens); q.answer.Counter.Total() > most {
			return fmt.Errorf("the server sent more than %d tokens", most)
		}
		if m.Done {
			q.drain()
			return nil
		}
	}
}

// drainWithin is how long to wait for the end of the stream after the final message.
const drainWithin = 100 * time.Millisecond

// drain reads the rest of the stream, so that the server can finish before the connection closes. It stops if the
// server sends on.
func (q *request) drain() {
	defer time.AfterFunc(drainWithin, func() { _ = q.x.Body.Close() }).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(q.x.Body, 4<<10)) // no useful data follows
}

// reasonDone is the reason if the server reports only that the request is complete.
const reasonDone = "done"

// token emits the tokens of a message.
func (q *request) token(p *answers.Part, n, before int) {
	e := event.Event{Kind: event.KindToken, At: p.At, ID: -1, N: int32(n), Reasoning: int32(p.Reasoned(n)), Index: int32(before), Choice: uint16(p.Choice)}
	if !slices.Contains(p.IDs, -1) {
		if len(p.IDs) == 1 {
			e.ID = p.IDs[0]
		}
		q.ids = append(q.ids, p.IDs...)
	}
	if q.want.SendText {
		if e.Text = p.Text; len(e.Text) > maxPiece {
			e.Text = strings.Clone(e.Text[:maxPiece]) // a copy, so that the rest is not kept in memory
		}
		q.text.WriteString(p.Text[:min(len(p.Text), maxText-q.text.Len())])
	}
	q.emit(e)
}

// outcome returns the counts of the answer: those of the server, or what is known of the request, or else the counted ones.
func (q *request) outcome() event.Outcome {
	s := &q.answer.Sum
	if s.Prompt == 0 {
		s.Prompt = len(q.want.IDs)
	}
	if !q.client.opt.Cached && q.client.server.isExtended() {
		s.CachedKnown = true // nothing is, unless the server reports it
	}
	out := q.answer.Outcome()
	if out.Reason = s.Why; s.Done {
		out.Reason = cmp.Or(s.Why, reasonDone)
	}
	out.Asked = q.began
	return out
}

// finish emits the end of the request, and the server's durations before the first token, as stages that end at the first
// token: the server does not report when they really ended.
func (q *request) finish(err error) engine.Result {
	q.queue()
	q.answer.End()
	if err == nil && q.answer.Clumped(q.client.opt.Clock.Now()) {
		q.client.Clumped.Add(1)
	}
	outcome := q.outcome()
	for _, stage := range slices.Backward(q.answer.Stages()) {
		stage.At = q.answer.First
		q.emit(stage)
	}
	state := event.StateFinished
	switch {
	case errors.Is(err, errCancelled):
		state, outcome.Reason, err = event.StateCancelled, "cancelled", nil
	case err != nil:
		state, outcome.Reason = event.StateFailed, q.reason(err)
	case outcome.Reason == "cancelled": // with another request
		state = event.StateCancelled
	case q.answer.Sum.Generated == 0 && q.answer.First != 0:
		q.client.Uncounted.Add(1)
	case outcome.AnyLater:
		q.client.Unstreamed.Add(1)
	}
	q.emit(event.Event{Kind: event.KindRequest, At: q.client.opt.Clock.Now(), State: state, Data: &outcome})
	return engine.Result{Outcome: outcome, State: state, IDs: q.ids, Text: q.text.String(), Err: err}
}
