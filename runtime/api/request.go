package api

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
	"github.com/llmtop/llmtop/runtime"
)

// request is one request on its way. It belongs to a goroutine of its own.
type request struct {
	client *Client
	id     event.RequestID
	asked  runtime.Request
	began  event.Time // before a connection was looked for

	x       exchange
	queued  sync.Once  // the first event
	sent    event.Time // set by it
	first   event.Time // of the first token; 0 before
	counted int        // tokens in events
	told    int        // tokens generated so far, as the server has told last
	text    strings.Builder
	ids     []int32
	outcome event.Outcome
	last    chunk         // what the server has reported, of the last message that had any of it
	answer  *event.Answer // nil: it has too many messages
}

// errUnended is the error of an answer that stops without a reason.
var errUnended = errors.New("the answer stopped without having ended")

// run makes the request and tells of it until it has ended.
func (q *request) run(ctx context.Context, body []byte) runtime.Result {
	c := q.client
	q.answer = &event.Answer{Began: q.began, Chat: c.server.api == OpenAIChat || c.server.api == OllamaChat}
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

// exchange sends the request and reads the answer. alive is called whenever something has come.
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
		return errors.New("the server does not stream: it answers with one JSON document")
	}
	return q.read(newEvents(in))
}

// queue emits the first event, once it is known when the request was written. It may be called from any goroutine.
func (q *request) queue() {
	q.queued.Do(func() {
		var wrote bool
		if q.sent, wrote = q.x.sent(); !wrote {
			q.sent = q.began
		}
		info := &event.Request{Group: q.asked.Group, Label: q.asked.Label, MaxTokens: q.asked.MaxTokens, Probe: q.asked.Probe}
		if q.asked.SendText {
			info.Prompt = q.asked.Text
		}
		q.emit(event.Event{Kind: event.KindRequest, At: q.sent, State: event.StateQueued, Data: info})
	})
}

func (q *request) emit(e event.Event) {
	e.Req, e.Layer = q.id, -1
	q.client.sink.Emit(e)
}

// read takes the answer to its end.
func (q *request) read(in messages) error {
	var c chunk
	for {
		value, failed, at, err := in.next()
		switch {
		case err == io.EOF && q.outcome.Reason == "":
			return errUnended
		case err == io.EOF:
			return nil
		case errors.Is(err, errLongLine):
			return err
		case err != nil:
			return broken(err)
		case string(value) == "[DONE]":
			q.note(at, event.IsDone)
			return q.drain()
		}
		if err := c.read(value); err != nil && !failed {
			return err
		}
		if err := c.failure(failed, value, secret(q.client.opt.Key)); err != nil {
			return fmt.Errorf("the server failed: %w", err)
		}
		if q.take(&c, at); c.Done {
			return q.drain()
		}
	}
}

// drainWithin is how long the end of an answer is waited for that has told that it is complete.
const drainWithin = 100 * time.Millisecond

// drain reads what the server sends after the end, so that it does not find the connection closed before it is done. One that sends on is left.
func (q *request) drain() error {
	defer time.AfterFunc(drainWithin, func() { _ = q.x.Body.Close() }).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(q.x.Body, reads)) // nothing that counts comes any more
	if q.outcome.Reason == "" {
		q.outcome.Reason = reasonDone
	}
	return nil
}

// reasonDone is why a request has ended of which the server says no more than that it has.
const reasonDone = "done"

// take takes one message.
func (q *request) take(c *chunk, at event.Time) {
	has := c.content(q.client.server.api)
	total := c.total()
	q.queue()
	q.note(at, kindOf(c, &has))
	if has.finish != "" {
		q.outcome.Reason = clean(has.finish)
	}
	if c.Usage != nil || c.Timings != nil || c.Metrics != nil || c.Done {
		q.report(c)
	}
	if has.text != "" {
		q.token(&has, total, at)
	}
	q.told = max(q.told, total)
}

// token tells of the tokens in a message: as many as it has ids, or as the server's count has grown by, or else one.
func (q *request) token(has *content, total int, at event.Time) {
	n := 1
	switch {
	case len(has.ids) > 0:
		n = len(has.ids)
	case total > 0:
		n = total - q.counted
	}
	if n <= 0 {
		if q.first != 0 {
			return // more text of a token that was told
		}
		n = 1
	}
	if q.first == 0 {
		q.first = at
	}
	e := event.Event{Kind: event.KindToken, At: at, ID: -1, N: int32(n), Index: int32(q.counted)}
	if len(has.ids) == 1 {
		e.ID = has.ids[0]
	}
	q.ids = append(q.ids, has.ids...)
	if q.asked.SendText {
		e.Text = has.text
		q.text.WriteString(has.text)
	}
	q.counted += n
	q.emit(e)
}

// report keeps what the server says of the request. What a message lacks stays what an earlier one has said.
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

// finish tells how the request ended.
func (q *request) finish(err error) runtime.Result {
	q.queue()
	q.account()
	q.stages()
	state := event.StateFinished
	switch {
	case errors.Is(err, errCancelled):
		state, q.outcome.Reason, err = event.StateCancelled, "cancelled", nil
	case err != nil:
		state, q.outcome.Reason = event.StateFailed, clean(err.Error())
	case q.told == 0 && q.counted > 0:
		q.client.untold.Add(1)
	}
	outcome := q.outcome
	outcome.Answer = q.answer
	q.emit(event.Event{Kind: event.KindRequest, At: q.client.opt.Clock.Now(), State: state, Data: &outcome})
	return runtime.Result{Outcome: outcome, State: state, IDs: q.ids, Text: q.text.String(), Err: err}
}
