package watch

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/llmtop/llmtop/profiler/event"
)

// linkNotes prints that an engine cannot be reached, and that it can again, where no screen shows it.
type linkNotes struct {
	to   io.Writer
	at   string       // address
	last atomic.Int32 // the link that was printed last, an event.Link
}

// Emit implements event.Sink.
func (n *linkNotes) Emit(e event.Event) {
	p, ok := e.Data.(*event.EngineInfo)
	if !ok || p == nil || p.Remote.Since == 0 { // not tried yet
		return
	}
	link, why := p.Remote.Link, ""
	last := event.Link(n.last.Swap(int32(link)))
	if link == last || last == event.LinkNone && link == event.LinkConnected {
		return
	}
	if p.Remote.Reason != "" {
		why = ", " + p.Remote.Reason
	}
	fmt.Fprintf(n.to, "connection to %s: %v%s\n", n.at, link, why)
}
