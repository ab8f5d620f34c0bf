package answers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// Observer reads the answer to one request that generates. It emits the tokens as they arrive, and returns how the request
// ended.
type Observer struct {
	Messages int // that were read so far

	server  *Server
	dialect *Dialect
	emit    func(event.Event)
	in      *Reader

	status  int      // of HTTP; 0: no answer
	streams bool     // the answer is a stream of messages
	burst   struct { // tokens of one choice in one read, not emitted yet
		at              event.Time
		choice, n, from int // from: tokens of the choice before them
		reasoning       int // of n
		lost            bool
	}
	unread string // why part of it could not be read; "": all was read

	holes   int   // places before which bytes are missing, or times cannot be compared with those behind
	torn    int   // of them up to the last of which bytes are missing
	late    bool  // one of them is before the first token
	after   []int // by choice, the holes before its last token
	total   bool  // the server's count of tokens came after the last missing bytes
	untimed bool  // times of the answer cannot be compared
	Answer
}

// Observe returns an observer of an answer in a dialect. emit emits an event of its request.
func (s *Server) Observe(d *Dialect, emit func(event.Event)) *Observer {
	o := &Observer{server: s, dialect: d, emit: emit}
	o.Token = o.token
	return o
}

// Queued returns the data of the queued event of a request in a dialect, and of its body; nil: it could not be read.
func (d *Dialect) Queued(group string, body *Request) *event.Request {
	info := &event.Request{Group: group, Label: d.Name, Chat: d.Chat, ColdLater: d.Lines}
	if body != nil {
		info.Model, info.MaxTokens = clean.Cut(body.Model(), MaxName), body.MaxTokens()
	}
	return info
}

// Read reads the answer to its end, or until it cannot be read any further. at returns the time of the last read of from. If
// from returns ErrMore, Read returns false, and Resume reads on.
func (o *Observer) Read(status int, header http.Header, from io.Reader, at func() event.Time) (ended bool) {
	o.status = status
	if header.Get("Server") == "llama.cpp" {
		o.server.Runs("llama.cpp")
	}
	in, err := NewReader(o.dialect, status, header, from, at)
	o.in, o.streams = in, err == nil && in.Streams()
	return o.read(err)
}

// Resume reads on after ErrMore. It is false if that came again.
func (o *Observer) Resume() (ended bool) { return o.read(nil) }

// read reads until an error. err: it has occurred already.
func (o *Observer) read(err error) (ended bool) {
	for err == nil {
		var m *Message
		m, err = o.in.Next()
		if err == ErrMore {
			return false
		}
		o.Messages++
		switch {
		case err == nil:
			o.message(m)
		case errors.Is(err, ErrJSON):
			o.Sum.Failed = o.Sum.Failed || m.Failed
			if !m.Failed && !m.Torn && !m.Rest {
				o.miss(err)
			}
			err = nil
		case errors.Is(err, ErrLost):
			o.lose()
			err = nil
		case errors.Is(err, ErrLong) && o.streams:
			o.miss(err)
			err = nil
		}
	}
	o.Answer.End()
	switch {
	case errors.Is(err, ErrLost), err == errHole:
		o.lose()
	case err != io.EOF && err != io.ErrUnexpectedEOF: // a truncated compressed answer is reported elsewhere
		o.miss(err)
	}
	o.Flush()
	if err := o.server.countPicks(&o.Sum); err != nil {
		o.server.Warn(uncountedPicks(err))
		if !errors.Is(err, errNoUsage) && !errors.Is(err, errShape) {
			o.Sum.Malformed++
		}
	}
	o.server.Update(func(e *event.EngineInfo) { e.Remote.Malformed += uint64(o.Sum.Malformed) })
	return true
}

// Join says that the answer is read from somewhere in its middle on. Call it before Read.
func (o *Observer) Join() {
	o.Counter.joined = true
	o.lose()
}

// lose notes that bytes of the answer are missing.
func (o *Observer) lose() {
	o.Flush()
	o.holes, o.late, o.total = o.holes+1, o.late || o.First == 0, false
	o.torn = o.holes
}

// Unclock says that the clock was set: times before cannot be compared with those that follow.
func (o *Observer) Unclock() {
	o.Flush()
	o.untimed = true
	o.holes, o.late = o.holes+1, o.late || o.First == 0
}

// miss records the first reason why something could not be read.
func (o *Observer) miss(why error) {
	if o.unread == "" {
		o.unread = why.Error()
	}
}

// message processes one message.
func (o *Observer) message(m *Message) {
	if !m.again && m.Model != o.Sum.Model && m.Model != "" {
		o.server.Model(m.Model)
	}
	if !m.again && m.Provider != o.Sum.Provider && m.Provider != "" {
		o.server.Runs(m.Provider)
	}
	o.total = o.total || m.Generated > 0
	o.Add(m)
}

// token counts tokens. All of one choice in one read share a timestamp.
func (o *Observer) token(p *Part, n, before int) {
	b := &o.burst
	reasoning, lost := p.Reasoned(n), false
	if o.holes > 0 {
		for len(o.after) <= p.Choice {
			o.after = append(o.after, 0)
		}
		lost, o.after[p.Choice] = o.after[p.Choice] < o.holes, o.holes
	}
	if b.n > 0 && (b.at != p.At || b.choice != p.Choice || reasoning > 0 && b.n > b.reasoning || lost) {
		o.Flush()
	}
	if b.n == 0 {
		b.at, b.choice, b.from, b.lost = p.At, p.Choice, before, lost
	}
	b.n, b.reasoning = b.n+n, b.reasoning+reasoning
}

// Flush emits the tokens that wait for others of the same read. Call it when no more bytes of that read follow.
func (o *Observer) Flush() {
	b := &o.burst
	if b.n == 0 {
		return
	}
	o.emit(event.Event{Kind: event.KindToken, At: b.at, ID: -1, N: int32(b.n), Reasoning: int32(b.reasoning), Index: int32(b.from), Choice: uint16(b.choice), Lost: b.lost})
	b.n, b.reasoning = 0, 0
}

// stages emits the server's durations before the first token, as stages that follow each other until the first token.
func (o *Observer) stages(since event.Time) {
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
	if len(spans) > 0 {
		o.server.Can(event.CapStages)
	}
}

// End is how the exchange of a request and its answer ended.
type End struct {
	Sent, At     event.Time // when the request was sent, and when the last byte came
	Model        string     // the requested model
	Complete     bool       // the answer came to its end
	Refused      bool       // there is no answer
	Disconnected bool       // the client closed the connection before that
	Lost         bool       // nor is it known how it ended: its end was not received
	Broken       string     // why there is no answer, or no end of it
}

// ServerClosed is the failure reason of an answer whose connection the server closed before its end.
const ServerClosed = "the server closed the connection before the end of its answer"

// unended is the failure reason of a stream that stops without its final message.
const unended = "the stream stopped before its final message"

// unseen is the reason of an answer whose end was not received.
const unseen = "its end was not received"

// Finish emits the stages of the request, counts what could not be measured, and returns the final state and the outcome.
// The answer, if there is one, must have been read.
func (o *Observer) Finish(e End) (event.State, event.Outcome) {
	var outcome event.Outcome
	if o.status != 0 {
		outcome = o.Outcome()
		if o.torn > 0 {
			o.tear(&outcome)
		}
		if !o.late {
			o.stages(e.Sent)
		}
		if e.Complete && !e.Disconnected && o.holes == 0 {
			o.warn(e.At, outcome.AnyLater)
		}
	}
	outcome.AnyEnd, outcome.AtLeast = outcome.AnyEnd || e.Lost || o.untimed, outcome.AtLeast || e.Lost && !o.total
	if o.Sum.Model == "" && e.Model != "" && !e.Refused {
		o.server.Model(e.Model)
	}
	var state event.State
	state, outcome.Reason = o.verdict(&e)
	return state, outcome
}

// tear marks in the outcome what is unknown of an answer of which parts are missing.
func (o *Observer) tear(out *event.Outcome) {
	c := &o.Counter
	out.Torn, out.AtLeast = true, !o.total || c.Choices() > 1 && !o.Sum.Done
	out.AnyEnd = c.Choices() > 0 && o.tailMissing()
	if c.reasoning > 0 || o.Sum.Reasoning > 0 {
		out.Reasoning, out.Answered, out.AnyReasoning = 0, 0, true
	}
	first := 0
	if c.Choices() == 1 {
		first = c.choices[0].firstTokens
	}
	out.Later, out.AnyLater = 0, true
	switch {
	case c.guessed || first == 0:
	case o.late && o.holes == 1: // what was received has no hole
		out.Later, out.AnyLater = c.Total()-first, c.Total() == first
	case !o.late && !out.AtLeast:
		out.Later, out.AnyLater = max(out.Generated-first, 0), false
	}
}

// tailMissing reports whether bytes of a stream are missing after the last token that was received of a choice: its end may
// be among them.
func (o *Observer) tailMissing() bool {
	return o.torn > 0 && o.streams && (len(o.after) < max(o.Counter.Choices(), 1) || slices.Min(o.after) < o.torn)
}

// warn counts what could not be measured in a complete answer. unknown: how many of its tokens were streamed.
func (o *Observer) warn(end event.Time, unknown bool) {
	if o.Clumped(end) {
		o.server.Warn(clumped)
	}
	switch c, total := &o.Counter, o.Sum.Generated; {
	case o.unread != "":
		o.server.Warn(Unread(o.unread))
	case unknown:
		o.server.Warn(NoTPOT)
	case c.guessed && total == 0:
		o.server.Warn(MessageIsToken)
	case c.guessed && total > c.Total()+max(c.Choices(), 1): // the token that ends a text has no message
		o.server.Warn(ITLOfMessages)
	}
}

// verdict returns the final state of the request, and the reason.
func (o *Observer) verdict(e *End) (event.State, string) {
	sum := &o.Sum
	switch {
	case e.Disconnected && !sum.Done && sum.Why == "" && !sum.Failed:
		return event.StateCancelled, "cancelled"
	case e.Refused:
		return event.StateFailed, e.Broken
	case e.Lost && o.status == 0:
		return event.StateUnseen, unseen
	case o.status < 200 || o.status > 299:
		return event.StateFailed, strings.TrimSpace(fmt.Sprintf("HTTP %d %s", o.status, http.StatusText(o.status))) + kind(sum)
	case sum.Failed:
		return event.StateFailed, "the server reported an error" + kind(sum)
	case sum.Why == "cancelled": // by the client, with another request
		return event.StateCancelled, "cancelled"
	case e.Lost && !sum.Done && sum.Why == "":
		return event.StateUnseen, unseen
	case sum.Done || sum.Why != "":
		if sum.Why == "" && o.dialect.Lines {
			return event.StateFinished, "stop" // old versions of Ollama send no reason
		}
		return event.StateFinished, sum.Why
	case !e.Complete:
		return event.StateFailed, e.Broken
	case o.unread != "":
		return event.StateFinished, "not read: " + o.unread
	case o.tailMissing(): // its final message may be among what is missing
		return event.StateUnseen, unseen
	case o.streams:
		return event.StateFailed, unended
	}
	return event.StateFinished, ""
}

func kind(sum *Message) string {
	if sum.Kind == "" {
		return ""
	}
	return " (" + sum.Kind + ")"
}
