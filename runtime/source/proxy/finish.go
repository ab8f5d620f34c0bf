package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// unended is the failure reason of a stream that stops without its final message.
const unended = "the stream stopped before its final message"

// finish emits the final event of the request. It runs when the exchange no longer changes.
func (x *exchange) finish() {
	var (
		outcome event.Outcome
		sum     answers.Message
	)
	o := x.observer
	if o != nil {
		outcome, sum = o.Outcome(), o.Sum
		if o.stages(x.sent) {
			x.proxy.link.can(event.CapStages)
		}
		if x.err == io.EOF {
			x.warnings(o, outcome.AnyLater)
		}
	}
	if sum.Model == "" && x.model != "" && !x.refused {
		x.proxy.link.model(x.model)
	}
	var state event.State
	state, outcome.Reason = x.verdict(&sum, o)
	if x.prompt != nil {
		p := <-x.prompt
		outcome.Reuse = p.Reuse
		if state == event.StateFinished {
			x.proxy.prompts.Keep(x.id, p)
		}
	}
	x.emit(event.Event{Kind: event.KindRequest, At: x.at, State: state, Data: &outcome})
}

// warnings counts what could not be measured in a complete answer. unknown: how many of its tokens were streamed.
func (x *exchange) warnings(o *observer, unknown bool) {
	if o.Clumped(x.at) {
		x.proxy.warn(clumped)
	}
	switch c, total := &o.Counter, o.Sum.Generated; {
	case o.unread != "":
		x.proxy.warn(unread(o.unread))
	case unknown:
		x.proxy.warn(noTPOT)
	case c.Guessed() && total == 0:
		x.proxy.warn(messageIsToken)
	case c.Guessed() && total > c.Total()+max(c.Choices(), 1): // the token that ends a text has no message
		x.proxy.warn(itlOfMessages)
	}
}

// verdict returns the final state of the request, and the reason.
func (x *exchange) verdict(sum *answers.Message, o *observer) (event.State, string) {
	switch {
	case x.disconnected && (o == nil || !sum.Done && sum.Why == "" && !sum.Failed):
		return event.StateCancelled, "cancelled"
	case x.refused:
		return event.StateFailed, plain(x.err)
	case x.status < 200 || x.status > 299:
		return event.StateFailed, strings.TrimSpace(fmt.Sprintf("HTTP %d %s", x.status, http.StatusText(x.status))) + kind(sum)
	case sum.Failed:
		return event.StateFailed, "the server reported an error" + kind(sum)
	case sum.Done || sum.Why != "":
		if sum.Why == "" && x.dialect.Lines {
			return event.StateFinished, "stop" // old versions of Ollama send no reason
		}
		return event.StateFinished, sum.Why
	case x.err != io.EOF:
		if !errors.Is(x.err, errClientBody) {
			x.proxy.link.recheck()
		}
		return event.StateFailed, plain(x.err)
	case o.unread != "":
		return event.StateFinished, "not read: " + o.unread
	case o.streams:
		return event.StateFailed, unended
	}
	return event.StateFinished, ""
}

func kind(sum *answers.Message) string {
	if sum.Kind == "" {
		return ""
	}
	return " (" + sum.Kind + ")"
}

// plain formats a connection error for users. It quotes nothing of the request and of the answer.
func plain(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, errClientBody):
		return errClientBody.Error()
	case errors.Is(err, errSlowHeader):
		return errSlowHeader.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the server closed the connection before the end of its answer"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &op) && op.Op == "dial":
		return "the server cannot be reached: " + clean.Cut(op.Err.Error(), maxName)
	case errors.As(err, &op):
		return "the connection broke: " + clean.Cut(op.Err.Error(), maxName)
	}
	return fetch.Phrase(err)
}

// maxName limits names from outside, in characters.
const maxName = 200
