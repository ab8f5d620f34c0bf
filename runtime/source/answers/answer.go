package answers

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxHeld is how many messages that name no response are held back: those of a load of some 20 minutes.
const maxHeld = 4096

// Answer sums up the messages of one answer and counts its tokens. Set Token before the first message.
//
// The first messages with text that name no response (no id, object, time or model, and no token ids) are held back until
// one does: programs that load a model on demand stream in such messages what they do, before the model answers. They hold
// its tokens only if no message ever names a response.
type Answer struct {
	// Token is called with each part of a stream that has new tokens of its choice: how many, and how many came before.
	Token func(p *Part, n, before int)

	First   event.Time // time of the first token; 0: none yet
	Counter Counter

	answers bool                             // there was text that is not reasoning
	begun   bool                             // messages are not held back any more
	clumps  struct{ at, reads, parts int64 } // parts with tokens by their reads
	held    []Message

	Sum Message // counts, durations and the end; without text
}

// Add adds the next message.
func (a *Answer) Add(m *Message) {
	if !m.again {
		a.Sum.add(m)
	}
	if m.whole {
		return
	}
	for i := range m.Parts {
		a.answers = a.answers || m.Parts[i].Answer > 0
	}
	switch {
	case len(m.Parts) == 0 && !m.Named:
		return
	case !m.Named && !a.begun && len(a.held) < maxHeld:
		a.held = append(a.held, *m)
		a.held[len(a.held)-1].Parts = slices.Clone(m.Parts)
		return
	}
	a.begin(!m.Named)
	a.count(m)
}

// begin counts the messages that are held back, or drops them if they are not the model's.
func (a *Answer) begin(counts bool) {
	if counts {
		for i := range a.held {
			a.count(&a.held[i])
		}
	}
	a.held, a.begun = nil, true
}

// count counts the tokens of a message.
func (a *Answer) count(m *Message) {
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Choice = min(p.Choice, MaxChoices-1)
		n, before := a.Counter.Add(p, m.Generated)
		if n == 0 {
			continue // more text of a token already counted
		}
		if a.First == 0 {
			a.First = p.At
		}
		if a.clumps.parts++; a.clumps.at != int64(p.At) {
			a.clumps.at, a.clumps.reads = int64(p.At), a.clumps.reads+1
		}
		a.Token(p, n, before)
	}
}

// End counts what is held back, after the last message: if the answer has text or came to its end.
func (a *Answer) End() { a.begin(a.answers || a.Sum.Done || a.Sum.Why != "") }

// Clumped reports whether most messages of a stream that ended at a time came together with others: at least four in a
// read. Between two reads are at least 50 ms: a fast model fills a read as well.
func (a *Answer) Clumped(end event.Time) bool {
	const least, apart = 4, event.Time(50 * time.Millisecond)
	c := &a.clumps
	return c.reads > 2 && c.parts >= least*c.reads && end-a.First >= event.Time(c.reads-1)*apart
}

// Outcome returns the token totals: the server's, or else the counted ones.
func (a *Answer) Outcome() event.Outcome {
	s := &a.Sum
	out := event.Outcome{
		Prompt: s.Prompt, Cached: min(s.Cached, s.Prompt), AnyCached: s.Prompt > 0 && !s.CachedKnown, Generated: s.Generated,
		Cold: a.loads(),
	}
	if out.Generated == 0 || a.Counter.Choices() > 1 { // the count may be of one choice
		out.Generated = max(s.Generated, a.Counter.Total())
	}
	later, ok := a.Counter.Later(s.Generated, s.Reasoning)
	out.Later, out.AnyLater = later, !ok
	out.Reasoning, out.Answered, ok = a.Counter.Reasoning(s.Generated, s.Reasoning)
	out.AnyReasoning = !ok
	out.Drafted, out.Accepted = s.Drafted, min(s.Accepted, s.Drafted)
	return out
}

// loads reports whether the server loaded the model for the request.
func (a *Answer) loads() bool { return a.Sum.Load >= event.MinLoad }

// Stages returns the server's durations before the first token, the last one first, if there was a token. They have no
// times: the server does not report when they really ended.
func (a *Answer) Stages() (out []event.Event) {
	s := &a.Sum
	computed := 0 // unknown
	if s.CachedKnown {
		computed = max(s.Prompt-s.Cached, 0)
	}
	add := func(stage event.Stage, took time.Duration, n int) {
		if a.First != 0 && took > 0 {
			out = append(out, event.Event{Kind: event.KindStage, Stage: stage, Dur: int64(took), N: int32(n)})
		}
	}
	add(event.StagePrompt, s.Prefill, computed)
	add(event.StageQueue, s.Queue, 0)
	if a.loads() {
		add(event.StageLoad, s.Load, 0)
	}
	return out
}
