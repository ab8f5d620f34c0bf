package overview

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/experts"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/requests"
	"github.com/llmtop/llmtop/ui/view/system"
)

// ID identifies a pane.
type ID uint8

// The panes, in focus order.
const (
	TTFT ID = iota
	ITL
	Experts
	Throughput
	Machine
	Text
	Insights
	Queue
	Requests
	Breakdown
	NumPanes
)

var names = [NumPanes]string{"TTFT", "ITL", "Experts", "Throughput", "Machine", "Text", "Insights", "Queue", "Requests", "Breakdown"}

// String returns the title of the pane.
func (id ID) String() string { return names[id] }

// abouts says for each pane what it shows.
var abouts = [NumPanes]string{
	"where the time to first token goes: a bar per request, the newest first; its colours are the components",
	"inter-token latency: the gap before each token, a column per second; below, the newest request token by token",
	"which experts the router picks: a row per layer, a column per expert, brighter for more picks; beside a row its max/mean",
	"how fast the engine works, how many requests it has, how full its KV cache is",
	"what the machine and the engine's process use",
	"what the newest request generates; below, its tokens and its decode rate",
	"what is worth attention, the worst first: the cause, the evidence, and after an arrow what to try",
	"how the number of requests and the KV cache develop",
	"the newest requests, one per row",
	"TTFT and decode rate by model, slot, kind of prompt and group: a bar per request",
}

// About returns what the pane shows.
func (id ID) About() string { return abouts[id] }

// Words returns the words of the focused pane as a large screen shows them, without the text of a request.
func (v *View) Words(s *store.Snapshot, f *pane.Frame, zoomed bool) string {
	var g grid.Grid
	g.Reset(120, 40)
	var z *Zoom
	if zoomed {
		z = &v.zoom
	}
	Draw(g.All(), s, f, v.Focus, true, z)
	if v.Focus == Text {
		return v.Focus.String()
	}
	return g.Plain()
}

// reports returns whether the engine has reported what a pane shows, and whether it will as far as is known: it says so
// and has a request, or llmtop runs it.
func reports(id ID, s *store.Snapshot) (has, comes bool) {
	ours, asked, server := s.Engine.Remote.Link == event.LinkNone, len(s.Requests) > 0, s.AggregateOnly()
	announced := func(c event.Caps) bool { return ours || asked && s.Engine.Caps.Has(c) }
	if s.CallsOnly() {
		return false, id == Throughput || id == Machine || id == Insights
	}
	switch id {
	case Insights:
		return false, true
	case TTFT:
		return false, !s.NeverReached() && !latency.NoTTFT(s)
	case Throughput:
		return false, !s.NeverReached() && !(s.ReportsTooLittle() && len(s.Aggregates.Numbers) == 0)
	case ITL:
		return s.Latency.Of[store.ITL][metric.Session].Count > 0 || len(s.Aggregates.Histograms) > 0 || slices.ContainsFunc(s.Requests, polled), announced(event.CapTokens)
	case Experts:
		return s.Experts != nil, (ours || asked) && experts.Missing(s) == ""
	case Machine:
		return s.Host.Sampled, ours || s.Engine.Caps.Has(event.CapHost)
	case Text:
		return s.Current != nil && s.Current.Text != "", announced(event.CapText)
	case Queue:
		load := s.Totals()
		return s.KV.Usage.OK() || server && (load.Running.OK() || load.Queued.OK()), false
	case Breakdown: // has its own place
		return false, len(s.Requests) > 1
	case Requests: // the TTFT pane of a polled server has its slots
		return asked && !server, ours
	}
	return false, false
}

func polled(r *store.Request) bool { return r.Polled }

// forms are how the panes are drawn: in the overview, and zoomed to the full screen. All that a windowed one shows covers
// windows.
var forms = [NumPanes]struct {
	draw     func(grid.Area, *store.Snapshot, *pane.Frame)
	zoom     func(grid.Area, *store.Snapshot, *pane.Frame, *Zoom)
	windowed bool
}{
	{latency.DrawTTFT, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { latency.ZoomTTFT(a, s, f, z.request) }, true},
	{latency.DrawITL, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { latency.ZoomITL(a, s, f, z.stall) }, true},
	{experts.DrawPane, same(experts.DrawPane), true},
	{drawThroughput, same(zoomThroughput), false},
	{system.DrawPane, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { system.DrawZoomed(a, s, f, &z.machine) }, false},
	{drawText, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { zoomText(a, s, f, &z.scroll) }, false},
	{drawInsights, func(a grid.Area, s *store.Snapshot, f *pane.Frame, z *Zoom) { zoomInsights(a, s, f, &z.scroll) }, false},
	{drawQueue, same(drawQueue), false},
	{requests.DrawPane, same(requests.DrawPane), false},
	{drawBreakdown, same(drawBreakdown), false},
}

// same makes the zoomed form of a pane that does not scroll.
func same(draw func(grid.Area, *store.Snapshot, *pane.Frame)) func(grid.Area, *store.Snapshot, *pane.Frame, *Zoom) {
	return func(a grid.Area, s *store.Snapshot, f *pane.Frame, _ *Zoom) { draw(a, s, f) }
}

// Zoom is the state of a pane in full screen.
type Zoom struct {
	scroll  int // first row of a list; of a text, the rows below the screen
	stall   int // selected, counted from the newest
	request int // selected, counted from the newest
	machine system.Table
}

// Draw draws one pane in the overview, or in full screen if z is not nil.
func Draw(a grid.Area, s *store.Snapshot, f *pane.Frame, id ID, focused bool, z *Zoom) {
	f.Title, f.Focused = id.String(), focused
	form := &forms[id]
	draw := func(s *store.Snapshot) {
		switch {
		case a.W < pane.LeastWidth || a.H < pane.LeastHeight:
			f.Box(a, "")
		case z != nil:
			form.zoom(a, s, f, z)
		default:
			form.draw(a, s, f)
		}
	}
	if form.windowed {
		f.Windowed(a, s, draw)
	} else {
		draw(s)
	}
}
