package proxy

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// observer reads a copy of one answer and emits its tokens as they arrive.
type observer struct {
	emit            func(event.Event)
	model, provider func(name string) // called with the names of the model, and of the program that runs it
	dialect         *dialect
	tap             *tap

	streams bool       // the answer is a stream of messages
	answers bool       // there was text that is not reasoning
	first   event.Time // time of the first token; 0: none yet
	unnamed streamed.Unnamed[generated]
	counter streamed.Counter
	burst   struct { // tokens of one choice in one read, not emitted yet
		at              event.Time
		choice, n, from int // from: tokens of the choice before them
	}
	sum    fact   // all messages combined
	unread string // why part of it could not be read; "": all was read
}

func newObserver(d *dialect, emit func(event.Event), model, provider func(string)) *observer {
	o := &observer{emit: emit, model: model, provider: provider, dialect: d}
	o.tap = newTap(o.flush)
	o.unnamed.Count = o.tokens
	return o
}

// generated is the text of one message.
type generated struct {
	parts []streamed.Part
	total int // the server's running count; 0: none
}

// messages yields the messages of an answer.
type messages interface{ next() (message, error) }

// run reads the answer to its end, or until it cannot be read any further.
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
	o.unnamed.End(o.answers || o.sum.done || o.sum.why != "")
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

var errKind = errors.New("neither JSON nor a stream of events")

// messages returns the reader for an answer: by its content type, or if that is missing by the dialect.
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
		return nil, io.EOF // the HTTP status is enough
	}
	return nil, errKind
}

var (
	errJSON = errors.New("a message is not JSON")
	done    = "[DONE]"
)

// message processes one message.
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
	if f.provider != o.sum.provider && f.provider != "" {
		o.provider(f.provider)
	}
	if o.streams {
		for i := range f.parts {
			f.parts[i].At = m.at
			o.answers = o.answers || f.parts[i].Answer > 0
			f.named = f.named || f.parts[i].Tokens > 0
		}
		o.unnamed.Add(generated{f.parts, f.generated}, len(f.parts) > 0, f.named)
	}
	o.sum.add(&f)
	return nil
}

// add merges a message into the sum of the answer. Fields that the message lacks keep their values.
func (f *fact) add(m *fact) {
	if m.model != "" {
		f.model = m.model
	}
	if m.provider != "" {
		f.provider = m.provider
	}
	if m.why != "" {
		f.why = m.why
	}
	f.done, f.cachedKnown = f.done || m.done, f.cachedKnown || m.cachedKnown
	f.malformed += m.malformed
	f.prompt, f.cached, f.generated = max(f.prompt, m.prompt), max(f.cached, m.cached), max(f.generated, m.generated)
	f.reasoning = max(f.reasoning, m.reasoning)
	f.load, f.queue, f.prefill = max(f.load, m.load), max(f.queue, m.queue), max(f.prefill, m.prefill)
	f.route(blob(m.routed), m.answers)
	if m.failed {
		f.failed, f.kind = true, m.kind
	}
}

// tokens counts the tokens of a message. All of one choice in one read share a timestamp.
func (o *observer) tokens(g generated) {
	for _, p := range g.parts {
		p.Choice = min(p.Choice, streamed.MaxChoices-1)
		n, before := o.counter.Add(p, g.total)
		b := &o.burst
		if b.n > 0 && (b.at != p.At || b.choice != p.Choice) {
			o.flush()
		}
		if b.n == 0 {
			b.at, b.choice, b.from = p.At, p.Choice, before
		}
		b.n += n
	}
}

// flush emits the pending tokens.
func (o *observer) flush() {
	b := &o.burst
	if b.n == 0 {
		return
	}
	if o.first == 0 {
		o.first = b.at
	}
	o.emit(event.Event{Kind: event.KindToken, At: b.at, ID: -1, N: int32(b.n), Index: int32(b.from), Choice: uint16(b.choice)})
	b.n = 0
}

// loads reports whether the server loaded the model for the request.
func (o *observer) loads() bool { return o.sum.load >= event.MinLoad }

// stages emits the server's durations before the first token, as stages that follow each other until the first token: the
// server does not report when they really ended. It returns whether there were any.
func (o *observer) stages(since event.Time) bool {
	s := &o.sum
	computed := 0 // unknown
	if s.cachedKnown {
		computed = max(s.prompt-s.cached, 0)
	}
	load := s.load
	if !o.loads() {
		load = 0
	}
	end := o.first
	var spans []event.Event
	for _, stage := range []struct {
		stage event.Stage
		took  time.Duration
		n     int
	}{
		{event.StagePrompt, s.prefill, computed},
		{event.StageQueue, s.queue, 0},
		{event.StageLoad, load, 0},
	} {
		took := min(stage.took, time.Duration(end-since)) // the server's clock may differ
		if o.first == 0 || took <= 0 {
			continue
		}
		spans = append(spans, event.Event{Kind: event.KindStage, At: end, Stage: stage.stage, Dur: int64(took), N: int32(stage.n)})
		end -= event.Time(took)
	}
	for _, e := range slices.Backward(spans) {
		o.emit(e)
	}
	return len(spans) > 0
}

// outcome returns the token totals: the server's, or else the counted ones.
func (o *observer) outcome() event.Outcome {
	s := &o.sum
	out := event.Outcome{
		Prompt: s.prompt, Cached: min(s.cached, s.prompt), AnyCached: s.prompt > 0 && !s.cachedKnown, Generated: s.generated, Cold: o.loads(),
	}
	if out.Generated == 0 || o.counter.Choices() > 1 { // the count may be of one choice
		out.Generated = max(s.generated, o.counter.Total())
	}
	later, ok := o.counter.Later(streamed.Usage{Generated: s.generated, Reasoning: s.reasoning})
	out.Later, out.AnyLater = later, !ok
	return out
}
