package proxy

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// finish emits the final event of the request. It runs when the exchange no longer changes.
func (x *exchange) finish() {
	o := x.observer
	if o == nil {
		o = x.proxy.server.Observe(x.dialect, x.emit)
	}
	end := answers.End{Sent: x.sent, At: x.at, Model: x.model, Complete: x.err == io.EOF, Refused: x.refused, Disconnected: x.disconnected}
	if x.err != nil {
		end.Broken = plain(x.err)
	}
	state, outcome := o.Finish(end)
	if state == event.StateFailed && !x.refused && !end.Complete && !errors.Is(x.err, errClientBody) {
		x.proxy.link.recheck()
	}
	if x.prompt != nil {
		p := <-x.prompt
		outcome.Reuse = p.Reuse
		if state == event.StateFinished {
			x.proxy.prompts.Keep(x.id, p)
		}
	}
	x.emit(event.Event{Kind: event.KindRequest, At: x.at, State: state, Data: &outcome})
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
		return answers.ServerClosed
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &op) && op.Op == "dial":
		return "the server cannot be reached: " + clean.Cut(op.Err.Error(), answers.MaxName)
	case errors.As(err, &op):
		return "the connection broke: " + clean.Cut(op.Err.Error(), answers.MaxName)
	}
	return fetch.Phrase(err)
}
