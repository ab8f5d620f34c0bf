package watch

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestLinkNotes checks that a line is printed for each change of a connection, and none for a first connection.
func TestLinkNotes(t *testing.T) {
	const at = "http://gpu1:8000"
	connected, lost := event.Remote{Link: event.LinkConnected, Since: 1}, event.Remote{Link: event.LinkDisconnected, Since: 2, Reason: "connection refused"}
	for _, c := range []struct {
		links []event.Remote
		want  string
	}{
		{[]event.Remote{{Link: event.LinkDisconnected, Reason: "no response yet"}, connected, connected}, ""},
		{[]event.Remote{lost, lost, connected}, "connection to http://gpu1:8000: disconnected, connection refused\nconnection to http://gpu1:8000: connected\n"},
	} {
		var out strings.Builder
		n := linkNotes(&out, at)
		n.Emit(event.Event{Kind: event.KindToken})
		for _, r := range c.links {
			n.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Remote: r}})
		}
		if out.String() != c.want {
			t.Errorf("%v:\n%s", c.links, out.String())
		}
	}
}
