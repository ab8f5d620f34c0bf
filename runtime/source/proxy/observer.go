package proxy

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
)

// observer reads a copy of one answer and emits its tokens as they arrive.
type observer struct {
	answers.Answer
	emit            func(event.Event)
	model, provider func(name string) // called with the names of the model, and of the program that runs it
	dialect         *answers.Dialect
	feed            *answers.Feed

	streams bool     // the answer is a stream of messages
	burst   struct { // tokens of one choice in one read, not emitted yet
		at              event.Time
		choice, n, from int // from: tokens of the choice before them
		reasoning       int // of n
	}
	unread string // why part of it could not be read; "": all was read
}

func newObserver(d *answers.Dialect, emit func(event.Event), model, provider func(string)) *observer {
	o := &observer{emit: emit, model: model, provider: provider, dialect: d}
	o.feed = answers.NewFeed(o.flush)
	o.Token = o.token
	return o
}

// run reads the answer to its end, or until it cannot be read any further.
func (o *observer) run(status int, header http.Header) {
	defer o.feed.Leave()
	defer o.flush()
	in, err := answers.NewReader(o.dialect, status, header, o.feed, o.feed.At)
	o.streams = err == nil && in.Streams()
	for err == nil {
		var m *answers.Message
		switch m, err = in.Next(); {
		case err == nil:
			o.message(m)
		case errors.Is(err, answers.ErrJSON):
			o.Sum.Failed = o.Sum.Failed || m.Failed
			if !m.Failed && !m.Torn {
				o.miss(err)
			}
			err = nil
		case errors.Is(err, answers.ErrLong) && o.streams:
			o.miss(err)
			err = nil
		}
	}
	o.End()
	if err != io.EOF && err != io.ErrUnexpectedEOF { // a truncated compressed answer is reported elsewhere
		o.miss(err)
	}
}

// miss records the first reason why something could not be read.
func (o *observer) miss(why error) {
	if o.unread == "" {
		o.unread = why.Error()
	}
}

// message processes one message.
func (o *observer) message(m *answers.Message) {
	if m.Model != o.Sum.Model && m.Model != "" {
		o.model(m.Model)
	}
	if m.Provider != o.Sum.Provider && m.Provider != "" {
		o.provider(m.Provider)
	}
	o.Add(m)
}

// token counts tokens. All of one choice in one read share a timestamp.
func (o *observer) token(p *answers.Part, n, before int) {
	b := &o.burst
	reasoning := p.Reasoned(n)
	if b.n > 0 && (b.at != p.At || b.choice != p.Choice || reasoning > 0 && b.n > b.reasoning) {
		o.flush()
	}
	if b.n == 0 {
		b.at, b.choice, b.from = p.At, p.Choice, before
	}
	b.n, b.reasoning = b.n+n, b.reasoning+reasoning
}

// flush emits the pending tokens.
func (o *observer) flush() {
	b := &o.burst
	if b.n == 0 {
		return
	}
	o.emit(event.Event{Kind: event.KindToken, At: b.at, ID: -1, N: int32(b.n), Reasoning: int32(b.reasoning), Index: int32(b.from), Choice: uint16(b.choice)})
	b.n, b.reasoning = 0, 0
}

// stages emits the server's durations before the first token, as stages that follow each other until the first token. It
// returns whether there were any.
func (o *observer) stages(since event.Time) bool {
	end, spans := o.First, o.Stages()
	for i := range spans {
		e := &spans[i]
		e.At, e.Dur = end, min(e.Dur, max(int64(end-since), 0)) // the server's clock may differ
		end -= event.Time(e.Dur)
	}
	spans = slices.DeleteFunc(spans, func(e event.Event) bool { return e.Dur == 0 })
	for _, e := range slices.Backward(spans) {
		o.emit(e)
	}
	return len(spans) > 0
}
