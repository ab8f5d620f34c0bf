package socket

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

// controlCaps are the capabilities for messages from readers.
const controlCaps = event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks | event.CapSample

// Controller acts on messages from readers. Its methods are called from many goroutines and must return soon.
type Controller interface {
	// Controls returns the messages that it accepts: of CapPrompt, CapCancel, CapPause, CapHooks and CapSample.
	Controls() event.Caps
	// Control acts on a message of these. It returns the request of one that generates.
	Control(c *wire.Control) (event.RequestID, error)
}

// ErrNotOffered means that the engine does not accept the message.
var ErrNotOffered = errors.New("the engine does not offer this")

// offers returns the engine's capabilities for this reader: those messages that it may send, and text only if it can
// get any.
func (r *reader) offers(engine event.Caps) event.Caps {
	if !r.server.opt.Text && !r.controls.Has(event.CapPrompt) {
		engine &^= event.CapText
	}
	return engine&^controlCaps | r.controls
}

// listen processes the reader's messages until the connection breaks. It returns why the server must drop the reader,
// or "".
func (r *reader) listen(l *lines) (why string) {
	l.most = wire.MaxControl
	var d wire.Decoder
	for {
		line, err := l.next()
		if errors.Is(err, errLong) {
			return err.Error()
		}
		if err != nil {
			return ""
		}
		if len(line) == 0 || string(line) == "\r" {
			continue
		}
		c, err := d.DecodeControl(line)
		switch {
		case err != nil:
			return err.Error()
		case c.Type == wire.Login: // a token that was not requested
		case !r.reply(r.do(&c)):
			return "too many messages: answers are not being read"
		}
	}
}

// do processes one message and returns the reply.
func (r *reader) do(c *wire.Control) wire.Session {
	reply := wire.Session{Type: wire.Reply, Call: c.Call}
	var err error
	needs := c.Type.Needs()
	if needs == 0 || !r.controls.Has(needs) {
		err = ErrNotOffered
	} else {
		reply.Req, err = r.act(c)
	}
	if err != nil {
		reply.Req, reply.Reason = 0, err.Error()
	}
	reply.OK = err == nil
	return reply
}

// act makes the controller act on a message. Events of a new request may be written before its id is known here; the lock
// makes withhold wait for the id.
func (r *reader) act(c *wire.Control) (event.RequestID, error) {
	if c.Type != wire.Generate || !c.Text {
		return r.server.opt.Controller.Control(c)
	}
	r.withText.Lock()
	defer r.withText.Unlock()
	id, err := r.server.opt.Controller.Control(c)
	if err == nil {
		r.withText.add(id)
	}
	return id, err
}

// maxReplies limits the bytes of replies that wait for a reader.
const maxReplies = 64 << 10

// reply queues a reply for talk to write. It returns false if the reader sends messages without reading replies.
func (r *reader) reply(answer wire.Session) bool {
	r.mu.Lock()
	r.replies = append(wire.AppendSession(r.replies, &answer, nil), '\n')
	fits := len(r.replies) <= maxReplies
	r.mu.Unlock()
	r.rush()
	r.server.wakeOne(r)
	return fits
}

// Scheduled returns a controller for a scheduler.
func Scheduled(s *engine.Scheduler) Controller { return scheduled{s} }

type scheduled struct{ scheduler *engine.Scheduler }

func (c scheduled) Controls() event.Caps {
	controls := event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks
	if c.scheduler.Samples() {
		controls |= event.CapSample
	}
	return controls
}

func (c scheduled) Control(m *wire.Control) (event.RequestID, error) {
	switch s := c.scheduler; m.Type {
	case wire.Generate:
		h, err := s.Submit(submission(&m.Generation))
		if err != nil {
			return 0, err
		}
		return h.ID, nil
	case wire.Cancel:
		s.Cancel(m.Req)
	case wire.Pause:
		s.Pause()
	case wire.Resume:
		s.Resume()
	case wire.Hooks:
		s.ChangeHooks(func(h *engine.Hooks) { h.Split, h.Experts, h.Picks = m.On.Stages, m.On.Experts, m.On.Picks })
	case wire.Sample:
		if m.Every < 1 {
			return 0, fmt.Errorf("sample router picks in 1 step of %d: must be 1 or more", m.Every)
		}
		s.ChangeHooks(func(h *engine.Hooks) { h.Every = m.Every })
	}
	return 0, nil
}

// submission returns the request that a message asks for.
func submission(g *wire.Generation) engine.Request {
	return engine.Request{
		Text: g.Prompt, IDs: g.IDs, Special: g.Special, Label: g.Label, Group: g.Group, Probe: g.Probe, MaxTokens: g.MaxTokens,
		IgnoreEOS: g.IgnoreEOS, SendText: g.Text, TopLogprobs: g.Top, Picks: g.Picks,
		Params: engine.Params{
			Temperature: g.Temperature, TopK: g.TopK, TopP: g.TopP, MinP: g.MinP, RepeatPenalty: g.RepeatPenalty, Seed: g.Seed,
		},
	}
}
