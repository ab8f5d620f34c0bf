package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"unicode"

	"github.com/llmtop/llmtop/profiler/event"
)

// unended is the reason of an answer that stops without one.
const unended = "the answer stopped without having ended"

// finish tells how the request ended. It runs when nothing of the exchange changes any more.
func (x *exchange) finish() {
	var (
		outcome event.Outcome
		sum     fact
	)
	o := x.watched
	if o != nil {
		outcome, sum = o.outcome(), o.sum
		if o.stages(x.sent) {
			x.proxy.link.can(event.CapStages)
		}
		if x.how == io.EOF {
			x.doubts(o)
		}
	}
	if sum.model == "" && x.model != "" && !x.refused {
		x.proxy.link.model(x.model)
	}
	var state event.State
	state, outcome.Reason = x.verdict(&sum, o)
	x.tell(event.Event{Kind: event.KindRequest, At: x.at, State: state, Data: &outcome})
}

// doubts notes what is not known of an answer that came to its end.
func (x *exchange) doubts(o *observer) {
	switch total := o.sum.generated; {
	case o.unread != "":
		x.proxy.note(unread(o.unread))
	case o.guessed && total == 0:
		x.proxy.note(untold)
	case o.guessed && total > o.counted+1: // the token that ends a text has none
		x.proxy.note(byMessage)
	}
}

// verdict is how the request ended, and why.
func (x *exchange) verdict(sum *fact, o *observer) (event.State, string) {
	switch {
	case x.gone && (o == nil || !sum.done && sum.why == "" && !sum.failed):
		return event.StateCancelled, "cancelled"
	case x.refused:
		return event.StateFailed, plain(x.how)
	case x.status < 200 || x.status > 299:
		return event.StateFailed, strings.TrimSpace(fmt.Sprintf("HTTP %d %s", x.status, http.StatusText(x.status))) + kind(sum)
	case sum.failed:
		return event.StateFailed, "the server told of an error" + kind(sum)
	case sum.done || sum.why != "":
		return event.StateFinished, sum.why
	case x.how != io.EOF:
		x.proxy.link.doubt()
		return event.StateFailed, plain(x.how)
	case o.unread != "":
		return event.StateFinished, "not read: " + o.unread
	case o.streams:
		return event.StateFailed, unended
	}
	return event.StateFinished, ""
}

func kind(sum *fact) string {
	if sum.kind == "" {
		return ""
	}
	return " (" + sum.kind + ")"
}

// plain is an error of the connection in the words of a user.
func plain(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the server closed the connection before its answer had ended"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.As(err, &op) && op.Op == "dial":
		return "the server cannot be reached: " + printable(op.Err.Error())
	case errors.As(err, &op):
		return "the connection broke: " + printable(op.Err.Error())
	}
	return printable(err.Error())
}

// maxName bounds a name that comes from outside, in bytes.
const maxName = 200

// printable makes one line of bounded length of a text from outside.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	if len(text) > maxName {
		return strings.ToValidUTF8(text[:maxName], "") + "…"
	}
	return text
}
