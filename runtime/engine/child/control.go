package child

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// Controls implements socket.Controller, for clients that are attached to this process.
func (p *Process) Controls() event.Caps {
	return event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks | p.opt.Engine.Caps&event.CapSample
}

// Control implements socket.Controller. A cancellation does not wait for the engine.
func (p *Process) Control(m *wire.Control) (event.RequestID, error) {
	if m.Type == wire.Cancel {
		p.Cancel(m.Req)
		return 0, nil
	}
	return p.Runner.Control(m)
}
