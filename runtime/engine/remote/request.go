package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// request is a request in progress. Its fields belong to its own goroutine.
type request struct {
	client *Client
	id     event.RequestID
	want   engine.Request
	began  event.Time // before connecting

	x        exchange
	queued   sync.Once  // guards the queued event
	sent     event.Time // set with the queued event
	first    event.Time // time of the first token; 0: none yet
	unnamed  streamed.Unnamed[generated]
	answers  bool // there was text that is not reasoning
	counter  streamed.Counter
	reported int // tokens generated so far, as last reported by the server
	text     strings.Builder
	ids      []int32
	outcome  event.Outcome
	last     chunk // last counts and durations that the server reported
}

// errUnended means that an answer stopped without a finish reason.
var errUnended = errors.New("the answer stopped without a finish reason")

func newRequest(c *Client, id event.RequestID, want engine.Request) *request {
	q := &request{client: c, id: id, want: want}
	q.unnamed.Count = q.token
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
		return refusal(q.x.Response, secret(c.opt.Key))
	}
	in := newLines(q.x.Body, func() event.Time {
		alive()
		return q.x.read()
	})
	if c.server.api.lines() {
		return q.read(objects{in})
	}
	if kind, _, err := mime.ParseMediaType(q.x.Header.Get("Content-Type")); err == nil && kind == "application/json" {
		return errors.New("the server does not stream: it answered with one JSON document")
	}
	return q.read(newEvents(in))
}

// queue emits the queued event, once the time of sending is set. It may be called from any goroutine.
func (q *request) queue() {
	q.queued.Do(func() {
		var wrote bool
		if q.sent, wrote = q.x.sent(); !wrote {
			q.sent = q.began
		}
		info := &event.Request{Group: q.want.Group, Label: q.want.Label, MaxTokens: q.want.MaxTokens, Probe: q.want.Probe, ColdLater: q.client.server.api.lines()}
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

// read reads the answer to its end.
func (q *request) read(in messages) error {
	var c chunk
	for {
		value, failed, at, err := in.next()
		switch {
		case err == io.EOF && q.outcome.Reason == "":
			return errUnended
		case err == io.EOF:
			return nil
		case errors.Is(err, errLongLine), errors.Is(err, errLongAnswer):
			return err
		case err != nil:
			return broken(err)
		case string(value) == "[DONE]":
			return q.drain()
		}
		if err := c.read(value); err != nil && !failed {
			return err
		}
		if err := c.failure(failed, value, secret(q.client.opt.Key)); err != nil {
			return fmt.Errorf("the server failed: %w", err)
		}
		q.take(&c, at)
		if most := max(maxTokens, 2*q.want.MaxTokens); q.counter.Total() > most {
			return fmt.Errorf("the server sent more than %d tokens", most)
		}
		if c.Done {
			return q.drain()
		}
	}
}

// drainWithin is how long to wait for the end of the stream after the final message.
const drainWithin = 100 * time.Millisecond

// drain reads the rest of the stream, so that the server can finish before the connection closes. It stops if the
// server sends on.
func (q *request) drain() error {
	defer time.AfterFunc(drainWithin, func() { _ = q.x.Body.Close() }).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(q.x.Body, reads)) // no useful data follows
	if q.outcome.Reason == "" {
		q.outcome.Reason = reasonDone
	}
	return nil
}

// reasonDone is the reason if the server reports only that the request is complete.
const reasonDone = "done"

// take processes one message.
func (q *request) take(c *chunk, at event.Time) {
	has := c.content(q.client.server.api)
	total := c.total()
	q.queue()
	if has.finish != "" {
		q.outcome.Reason = brief(has.finish)
	}
	if c.Usage != nil || c.Timings != nil || c.Metrics != nil || c.Done {
		q.report(c)
	}
	q.answers = q.answers || has.answer > 0
	q.unnamed.Add(generated{has, total, at}, has.text != "", len(has.ids)+has.logs > 0 || c.named(q.client.server.api))
	q.reported = max(q.reported, total)
}

// generated is a message with text.
type generated struct {
	content
	total int // the server's count so far; 0: none
	at    event.Time
}

// token emits the tokens of a message.
func (q *request) token(has generated) {
	n, before := q.counter.Add(streamed.Part{
		At: has.at, Tokens: max(len(has.ids), has.logs), Answer: has.answer, Reasoning: has.reasoning,
	}, has.total)
	if n == 0 {
		return // more text of a token already counted
	}
	if q.first == 0 {
		q.first = has.at
	}
	e := event.Event{Kind: event.KindToken, At: has.at, ID: -1, N: int32(n), Index: int32(before)}
	if ids, ok := tokenIDs(has.ids); ok {
		if len(ids) == 1 {
			e.ID = ids[0]
		}
		q.ids = append(q.ids, ids...)
	}
	if q.want.SendText {
		if e.Text = has.text; len(e.Text) > maxPiece {
			e.Text = strings.Clone(e.Text[:maxPiece]) // a copy, so that the rest is not kept in memory
		}
		q.text.WriteString(has.text[:min(len(has.text), maxText-q.text.Len())])
	}
	q.emit(e)
}

// report stores the counts and durations in a message. Fields that the message lacks keep their values.
func (q *request) report(c *chunk) {
	if c.Usage != nil {
		q.last.Usage = c.Usage
	}
	if c.Timings != nil {
		q.last.Timings = c.Timings
	}
	if c.Metrics != nil {
		q.last.Metrics = c.Metrics
	}
	if c.Done {
		q.last.ollamaTimes = c.ollamaTimes
	}
}

// finish emits the end of the request.
func (q *request) finish(err error) engine.Result {
	q.queue()
	q.unnamed.End(q.answers || q.outcome.Reason != "")
	q.account()
	q.stages()
	state := event.StateFinished
	switch {
	case errors.Is(err, errCancelled):
		state, q.outcome.Reason, err = event.StateCancelled, "cancelled", nil
	case err != nil:
		state, q.outcome.Reason = event.StateFailed, q.reason(err)
	case q.reported == 0 && q.first != 0:
		q.client.uncounted.Add(1)
	case q.outcome.AnyLater:
		q.client.unstreamed.Add(1)
	}
	outcome := q.outcome
	outcome.Asked = q.began
	q.emit(event.Event{Kind: event.KindRequest, At: q.client.opt.Clock.Now(), State: state, Data: &outcome})
	return engine.Result{Outcome: outcome, State: state, IDs: q.ids, Text: q.text.String(), Err: err}
}
