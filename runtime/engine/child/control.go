package child

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Controller forwards the commands of clients that are attached to this process.
func (p *Process) Controller() socket.Controller {
	return controller{p.Runner, event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks | p.opt.Engine.Caps&event.CapSample}
}

type controller struct {
	*socket.Runner
	caps event.Caps
}

// Controls implements socket.Controller.
func (c controller) Controls() event.Caps { return c.caps }

// Cancel implements socket.Controller.
func (c controller) Cancel(id event.RequestID) error {
	c.Runner.Cancel(id)
	return nil
}
