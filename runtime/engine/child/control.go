package child

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
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

// Control implements socket.Controller. A cancellation does not wait for the engine.
func (c controller) Control(m *wire.Control) (event.RequestID, error) {
	if m.Type == wire.Cancel {
		c.Cancel(m.Req)
		return 0, nil
	}
	return c.Runner.Control(m)
}
