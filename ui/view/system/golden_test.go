package system

import (
	"testing"

	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/request"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// show shows the machine at the selected request.
func show(p *viewtest.Screen, selection *table.Selection) *viewtest.Screen {
	return p.Show(New(p, request.New(p, selection, nil, nil)))
}

// The machine of a server at a stall, in every size, and the last gauges; and one without GPU and limits.
func TestGolden(t *testing.T) {
	s := viewtest.MachineOfServer()
	stalled := viewtest.Selection(t, s, "stalled")
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
		show(viewtest.NewScreen(t, s, size), stalled).Golden("server")
	}
	show(viewtest.NewScreen(t, s, viewtest.Medium), stalled).GoldenColours("server")
	newest := &table.Selection{Follow: true}
	show(viewtest.NewScreen(t, s, viewtest.Medium).ASCII(), newest).Press("end").Golden("server_end_ascii")
	show(viewtest.NewScreen(t, viewtest.Crowd(5000), viewtest.Medium), newest).Golden("plain")
}
