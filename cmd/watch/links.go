package watch

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/llmtop/llmtop/profiler/event"
)

// linkNotes returns a sink that prints that the engine at an address cannot be reached, and that it can again, where no
// screen shows it.
func linkNotes(to io.Writer, at string) event.Sink {
	var printed atomic.Int32 // the link that was printed last, an event.Link
	return event.SinkFunc(func(e event.Event) {
		p, ok := e.Data.(*event.EngineInfo)
		if !ok || p == nil || p.Remote.Since == 0 { // not tried yet
			return
		}
		link, why := p.Remote.Link, ""
		last := event.Link(printed.Swap(int32(link)))
		if link == last || last == event.LinkNone && link == event.LinkConnected {
			return
		}
		if p.Remote.Reason != "" {
			why = ", " + p.Remote.Reason
		}
		fmt.Fprintf(to, "connection to %s: %v%s\n", at, link, why)
	})
}
