package proxy

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// observer reads the copy of one answer and tells of its tokens as they come.
type observer struct {
	tell    func(event.Event)
	model   func(name string) // told of the model's name
	dialect *dialect
	tap     *tap

	streams bool       // the answer comes in messages
	first   event.Time // of the first token; 0 before
	counted int        // tokens in events
	guessed bool       // a message with text did not tell of how many tokens it is
	burst   struct {   // tokens that came in one read, not told yet
		at event.Time
		n  int
	}
	sum    fact   // of all messages
	unread string // why some of it could not be read; "": all of it was
}

func newObserver(d *dialect, tell func(event.Event), model func(string)) *observer {
	o := &observer{tell: tell, model: model, dialect: d}
	o.tap = newTap(o.flush)
	return o
}

// messages are what an answer consists of.
type messages interface{ next() (message, error) }

// run reads the answer to its end, or as far as it can be read.
func (o *observer) run(status int, header http.Header) {
	defer o.tap.leave()
	defer o.flush()
	in, err := o.messages(status, header)
	for err == nil {
		var m message
		if m, err = in.next(); err == nil {
			err = o.message(&m)
		}
		if errors.Is(err, errLong) && o.streams {
			o.miss(err)
			err = nil
		}
	}
	if err != io.EOF && err != io.ErrUnexpectedEOF { // a compressed answer that was cut off is no riddle
		o.miss(err)
	}
}

// miss notes why something could not be read. The first reason is the one that counts.
func (o *observer) miss(why error) {
	if o.unread == "" {
		o.unread = why.Error()
	}
}

var errKind = errors.New("it is neither JSON nor a stream of events")

// messages chooses how the answer is taken apart: by its type, or else by what such requests are answered with.
func (o *observer) messages(status int, header http.Header) (messages, error) {
	from, err := decoded(o.tap, header)
	if err != nil {
		return nil, err
	}
	at := func() event.Time { return o.tap.at }
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch {
	case kind == "text/event-stream":
		o.streams = true
		return newSentEvents(newLines(from, at)), nil
	case kind == "application/x-ndjson", kind == "application/jsonl", kind == "" && o.dialect.bare:
		o.streams = true
		return ndjson{newLines(from, at)}, nil
	case kind == "application/json", kind == "application/problem+json":
		return &document{from: from, at: at}, nil
	case kind == "" && status == http.StatusOK:
		o.streams = true
		return newSentEvents(newLines(from, at)), nil
	case status != http.StatusOK:
		return nil, io.EOF // whatever is in the body, the status says enough
	}
	return nil, errKind
}

var (
	errJSON = errors.New("a message is not JSON")
	done    = "[DONE]"
)

// message takes one message.
func (o *observer) message(m *message) error {
	if string(m.value) == done {
		o.sum.done = true
		return nil
	}
	var f fact
	if err := o.dialect.read(&f, m.value); err != nil {
		switch {
		case m.failed:
			o.sum.failed = true
		case !m.torn:
			o.miss(errJSON)
		}
		return nil
	}
	f.failed = f.failed || m.failed
	if f.model != o.sum.model && f.model != "" {
		o.model(f.model)
	}
	if f.text && o.streams {
		o.token(&f, m.at)
	}
	o.sum.add(&f)
	return nil
}

// add takes over what a message tells of the whole answer. What it lacks stays what an earlier one has said.
func (f *fact) add(m *fact) {
	if m.model != "" {
		f.model = m.model
	}
	if m.why != "" {
		f.why = m.why
	}
	f.done = f.done || m.done
	f.prompt, f.cached, f.generated = max(f.prompt, m.prompt), max(f.cached, m.cached), max(f.generated, m.generated)
	f.load, f.queue, f.prefill = max(f.load, m.load), max(f.queue, m.queue), max(f.prefill, m.prefill)
	f.route(blob(m.routed), m.answers)
	if m.failed {
		f.failed, f.kind = true, m.kind
	}
}

// token counts the tokens in a message: as many as it has ids, or as the server's count has grown by, or else one. Those that came in the same
// read share a stamp.
func (o *observer) token(f *fact, at event.Time) {
	n := 1
	switch so := o.counted + o.burst.n; {
	case f.ids > 0:
		n = f.ids
	case f.generated == 0 || o.guessed: // a total at the end says nothing of one message
		o.guessed = true
	case f.generated > so:
		n = f.generated - so
	case so > 0:
		n = 0 // more text of a token that was told
	}
	if o.burst.n > 0 && o.burst.at != at {
		o.flush()
	}
	o.burst.at = at
	o.burst.n += n
}

// flush tells of the tokens that came last.
func (o *observer) flush() {
	if o.burst.n == 0 {
		return
	}
	if o.first == 0 {
		o.first = o.burst.at
	}
	o.tell(event.Event{Kind: event.KindToken, At: o.burst.at, ID: -1, N: int32(o.burst.n), Index: int32(o.counted)})
	o.counted += o.burst.n
	o.burst.n = 0
}

// stages tells what the server has reported of the time until the first token, as stages that ended with it: when they really did, the
// server does not say. It reports whether there was anything.
func (o *observer) stages(since event.Time) (some bool) {
	s := &o.sum
	for _, stage := range []struct {
		stage event.Stage
		took  time.Duration
		n     int
	}{
		{event.StageLoad, s.load, 0},
		{event.StageQueue, s.queue, 0},
		{event.StagePrompt, s.prefill, max(s.prompt-s.cached, 0)},
	} {
		took := min(stage.took, time.Duration(o.first-since)) // its clock is another one
		if o.first == 0 || took <= 0 {
			continue
		}
		some = true
		o.tell(event.Event{Kind: event.KindStage, At: o.first, Stage: stage.stage, Dur: int64(took), N: int32(stage.n)})
	}
	return some
}

// outcome sums up the tokens: as the server tells them, or else as its messages were counted.
func (o *observer) outcome() event.Outcome {
	s := &o.sum
	out := event.Outcome{Prompt: s.prompt, Cached: min(s.cached, s.prompt), Generated: s.generated}
	if out.Generated == 0 {
		out.Generated = o.counted
	}
	return out
}
