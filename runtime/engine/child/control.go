package child

import (
	"context"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Controller forwards the commands of clients that are attached to this process.
func (p *Process) Controller() socket.Controller { return controller{p} }

type controller struct{ process *Process }

// Controls implements socket.Controller.
func (c controller) Controls() event.Caps {
	return event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks | c.process.opt.Engine.Caps&event.CapSample
}

func (c controller) Generate(g *wire.Generation) (event.RequestID, error) {
	return c.process.generate(g)
}

func (c controller) Cancel(id event.RequestID) error {
	c.process.Cancel(id)
	return nil
}

func (c controller) Pause() error { return c.process.ask(c.process.client.Pause) }

func (c controller) Resume() error { return c.process.ask(c.process.client.Resume) }

func (c controller) Hooks(on wire.Measure) error {
	return c.process.ask(func(ctx context.Context) error { return c.process.client.Hooks(ctx, on) })
}

func (c controller) Sample(every int) error {
	return c.process.ask(func(ctx context.Context) error { return c.process.client.Sample(ctx, every) })
}
