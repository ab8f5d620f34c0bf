package socket

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime"
)

// controlCaps are the capabilities that are about messages from readers.
const controlCaps = event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks | event.CapSample

// Controller does what readers ask for. Its methods are called from many goroutines and return soon.
type Controller interface {
	// Controls are the messages that it takes: those of CapPrompt, CapCancel, CapPause, CapHooks and CapSample.
	Controls() event.Caps
	Generate(g *wire.Generation) (event.RequestID, error)
	Cancel(id event.RequestID) error
	Pause() error
	Resume() error
	Hooks(on wire.Measure) error
	// Sample has router picks counted in one forward pass of so many.
	Sample(every int) error
}

// ErrNotOffered is the error of a message that the engine does not take.
var ErrNotOffered = errors.New("the engine does not offer this")

// offers are the capabilities of the engine with those messages that this reader may send.
func (r *reader) offers(engine event.Caps) event.Caps { return engine&^controlCaps | r.controls }

// listen does what the reader asks for until the connection breaks. It tells why the reader is not wanted any more, if that is so.
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
		case c.Type == wire.Login: // a token that nobody has asked for
		case !r.reply(r.do(&c)):
			return "more messages than answers that were read"
		}
	}
}

// do does what a message asks for.
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
		reply.Req, reply.Why = 0, err.Error()
	}
	reply.OK = err == nil
	return reply
}

func (r *reader) act(c *wire.Control) (event.RequestID, error) {
	controller := r.server.opt.Controller
	switch c.Type {
	case wire.Generate:
		return controller.Generate(&c.Generation)
	case wire.Cancel:
		return 0, controller.Cancel(c.Req)
	case wire.Pause:
		return 0, controller.Pause()
	case wire.Resume:
		return 0, controller.Resume()
	case wire.Hooks:
		return 0, controller.Hooks(c.On)
	}
	return 0, controller.Sample(c.Every)
}

// maxReplies is how many bytes of answers wait for a reader that asks but does not read.
const maxReplies = 64 << 10

// reply leaves an answer for talk to write. It says false to a reader that asks for more than it reads.
func (r *reader) reply(answer wire.Session) bool {
	r.mu.Lock()
	r.replies = append(wire.AppendSession(r.replies, &answer, nil), '\n')
	fits := len(r.replies) <= maxReplies
	r.mu.Unlock()
	r.rush()
	r.server.wakeOne(r)
	return fits
}

// Scheduled is the controller of a scheduler.
func Scheduled(s *runtime.Scheduler) Controller { return scheduled{s} }

type scheduled struct{ scheduler *runtime.Scheduler }

func (c scheduled) Controls() event.Caps {
	controls := event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks
	if c.scheduler.Samples() {
		controls |= event.CapSample
	}
	return controls
}

func (c scheduled) Generate(g *wire.Generation) (event.RequestID, error) {
	h, err := c.scheduler.Submit(runtime.Request{
		Text: g.Prompt, IDs: g.IDs, Special: g.Special, Label: g.Label, Group: g.Group, Probe: g.Probe, MaxTokens: g.MaxTokens,
		IgnoreEOS: g.IgnoreEOS, SendText: g.Text, TopLogprobs: g.Top, Picks: g.Picks,
		Params: runtime.Params{
			Temperature: g.Temperature, TopK: g.TopK, TopP: g.TopP, MinP: g.MinP, RepeatPenalty: g.RepeatPenalty, Seed: g.Seed,
		},
	})
	if err != nil {
		return 0, err
	}
	return h.ID, nil
}

func (c scheduled) Cancel(id event.RequestID) error {
	c.scheduler.Cancel(id)
	return nil
}

func (c scheduled) Pause() error {
	c.scheduler.Pause()
	return nil
}

func (c scheduled) Resume() error {
	c.scheduler.Resume()
	return nil
}

func (c scheduled) Hooks(on wire.Measure) error {
	c.scheduler.ChangeHooks(func(h *runtime.Hooks) { h.Split, h.Experts, h.Picks = on.Stages, on.Experts, on.Picks })
	return nil
}

func (c scheduled) Sample(every int) error {
	if every < 1 {
		return fmt.Errorf("sample router picks in 1 step of %d: must be 1 or more", every)
	}
	c.scheduler.ChangeHooks(func(h *runtime.Hooks) { h.Every = every })
	return nil
}
