package latency

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// DrawTTFT draws the newest requests, one bar of TTFT components each, or else the means of what a server counts.
func DrawTTFT(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	in := f.Box(a, "time to first token by component")
	if !Measured(s) {
		drawUnmeasuredTTFT(in, s, f)
		return
	}
	bars, parts, foot := shareRows(in.H, s)
	shown := s.Requests[:bars]
	drawBars(in.Sub(0, 0, in.W, bars), f, shown, s.Engine.Caps)
	drawTTFTFoot(in.Sub(0, in.H-foot-parts, in.W, foot+parts), s, f, parts, shown)
	drawTarget(a, s, f)
}

// fewBars is the number of bars that stay above the table of parts where there are more requests.
const fewBars = 6

// shareRows divides the h rows of the pane between the bars, the table of the newest request's parts, and the text
// below. Bars take rows first.
func shareRows(h int, s *store.Snapshot) (bars, parts, foot int) {
	switch {
	case h >= 9:
		foot = 4
	case h >= 6:
		foot = 2
	default:
		foot = 1
	}
	room := h - foot
	bars = min(len(s.Requests), room)
	if r := pane.WithTTFT(s.Requests); r != nil && foot == 4 {
		parts = min(len(r.Parts), max(room-bars, room-fewBars))
		if parts < pane.LeastParts {
			return bars, 0, foot
		}
		bars = min(bars, room-parts)
	}
	return bars, parts, foot
}

// drawTarget writes the TTFT target and whether the last request met it into the border.
func drawTarget(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	r := pane.WithTTFT(s.Requests)
	if r == nil || r.Targets.TTFT <= 0 || r.Cold {
		return
	}
	words := "target " + metric.Duration(int64(r.Targets.TTFT))
	if r.HitTarget {
		f.Foot(a, pane.Good, words+" met "+string(f.Skin.Glyphs.Yes))
	} else {
		f.Foot(a, pane.Bad, words+" missed "+string(f.Skin.Glyphs.No))
	}
}

// drawBars draws one stacked bar per request on a common scale. A cold request, whose load would dwarf the others, has
// its own scale over the whole width.
func drawBars(a grid.Area, f *pane.Frame, shown []*store.Request, caps event.Caps) {
	top := scale(shown)
	names := 5
	if a.W >= 60 {
		names = 15
	}
	const numbers = 10
	bar := a.Sub(names, 0, a.W-names-numbers-1, a.H)
	for y, r := range shown {
		drawName(a, y, names, r)
		if !r.TTFT.OK() {
			drawPending(bar, f, y, r, caps)
			continue
		}
		own := r.TTFT.V
		if !r.Cold || own < top {
			own = top
		}
		pane.DrawStack(bar, f, y, r, own)
		a.Right(a.W-2, y, pane.Data, metric.Seconds(r.TTFT.V))
		switch {
		case r.Cold, r.Targets.TTFT <= 0: // a cold one includes the model load; the target does not apply
		case r.HitTarget:
			a.Cell(a.W-1, y, pane.Good, f.Skin.Glyphs.Yes)
		default:
			a.Cell(a.W-1, y, pane.Bad, f.Skin.Glyphs.No)
		}
		if t := r.Targets.TTFT.Seconds(); t > 0 && t <= own {
			bar.Cell(int(t/own*float64(bar.W)), y, grid.Fg(theme.Data), f.Skin.Glyphs.Target)
		}
	}
}

// scale returns the longest TTFT among the warm requests shown, or among all if all are cold.
func scale(shown []*store.Request) float64 {
	warm, all := 0.0, 0.0
	for _, r := range shown {
		if r.TTFT.OK() {
			all = max(all, r.TTFT.V)
			if !r.Cold {
				warm = max(warm, r.TTFT.V)
			}
		}
	}
	if warm > 0 {
		return warm
	}
	return all
}

func drawName(a grid.Area, y, w int, r *store.Request) {
	l := a.Line(0, y)
	l.Put(pane.Plain, "#"+strconv.Itoa(int(r.ID))).Gap(1)
	note := sanitize.Line(r.Label)
	switch {
	case r.DeviceStart:
		note = "device start"
	case r.Cold:
		note = "cold"
	}
	if room := w - l.X - 1; room >= 4 {
		a.Elide(l.X, y, room, pane.Dim, note, '…')
	} else if r.Cold {
		a.Cell(w-1, y, pane.Dim, '*')
	}
}

// drawPending draws the row of a request without a first token.
func drawPending(a grid.Area, f *pane.Frame, y int, r *store.Request, caps event.Caps) {
	gl := f.Skin.Glyphs
	words := r.Status()
	if r.State.Final() {
		if r.Reason != "" && r.Reason != words {
			words += ": " + sanitize.Line(r.Reason)
		}
		switch {
		case r.State != event.StateFinished:
		case !caps.Has(event.CapTokens):
			words = "TTFT not reported by this engine"
		case r.Generated > 0 && r.E2EL.OK():
			words = "not streamed"
		}
		a.Elide(0, y, a.W, pane.StateStyle(r.State), words, gl.Ellipsis)
		return
	}
	spin := gl.Spinner[f.Spin%len(gl.Spinner)]
	a.Elide(0, y, a.W, pane.StateStyle(r.State), string(spin)+" "+words, gl.Ellipsis)
}

// drawTTFTFoot writes the dominant component, the table of parts rows, the percentiles and the legend, as many as fit.
func drawTTFTFoot(a grid.Area, s *store.Snapshot, f *pane.Frame, parts int, shown []*store.Request) {
	if a.H >= 4 {
		a = a.Sub(0, 1, a.W, a.H-1)
	}
	r := pane.WithTTFT(s.Requests)
	if r == nil {
		return
	}
	drawDominant(a, f, 0, r)
	if parts > 0 {
		pane.DrawParts(a.Sub(0, 1, a.W, parts), f, r)
		a = a.Sub(0, parts, a.W, a.H-parts)
	}
	if a.H >= 3 {
		drawQuantiles(a, s, f, 1)
	}
	if a.H >= 2 {
		drawLegend(a, f, a.H-1, shown)
	}
}

// drawDominant names the largest component of the newest TTFT.
func drawDominant(a grid.Area, f *pane.Frame, y int, r *store.Request) {
	l := a.Line(0, y)
	if r.Dominant.Share <= 0 {
		l.Put(pane.Dim, "#"+strconv.Itoa(int(r.ID))+": this engine does not report TTFT components")
		return
	}
	k := pane.ComponentLook(r.Dominant.Stage)
	l.Put(pane.Dim, "#"+strconv.Itoa(int(r.ID))+" ").Put(pane.Data, k.Name+" "+metric.Percent(r.Dominant.Share)).Put(pane.Plain, " of TTFT")
	sep := " " + string(f.Skin.Glyphs.Bullet) + " "
	also := func(words string) {
		l.Fit(grid.Piece{Style: pane.Dim, Words: sep}, grid.Piece{Style: pane.Plain, Words: words})
	}
	if r.Dominant.PerToken > 0 {
		also(metric.Duration(int64(r.Dominant.PerToken)) + "/token")
	}
	if n := len(r.Parts); n > 0 && r.Parts[n-1].Stage == event.StageNone {
		also("other " + metric.Duration(int64(r.Parts[n-1].Dur)))
	}
	if r.PromptTokens > 0 {
		also(strconv.Itoa(r.PromptTokens) + " prompt tokens")
	}
}

func drawQuantiles(a grid.Area, s *store.Snapshot, f *pane.Frame, y int) {
	l := a.Line(0, y)
	warm, cold := s.Latency.Of[store.TTFT][f.Window], s.Latency.Of[store.ColdTTFT][f.Window]
	if warm.Count > 0 {
		l.Put(pane.Dim, "warm")
		for _, q := range [...]struct {
			name string
			v    int64
		}{{" p50 ", warm.P50}, {"  p95 ", warm.P95}, {"  p99 ", warm.P99}} {
			l.Fit(grid.Piece{Style: pane.Dim, Words: q.name}, grid.Piece{Style: pane.Plain, Words: metric.Duration(q.v)})
		}
		l.Gap(2)
	}
	if cold.Count > 0 {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "cold "}, grid.Piece{Style: pane.Plain, Words: metric.Duration(cold.Max) + "  "})
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: "(" + f.Window.String() + ")"})
}

// drawLegend names the components of the shown requests and notes the scale of cold bars. Where not all fit, the
// shortest are omitted, which an ellipsis shows.
func drawLegend(a grid.Area, f *pane.Frame, y int, shown []*store.Request) {
	var total [len(store.Components)]time.Duration
	width := 0
	for _, r := range shown {
		for _, p := range r.Parts {
			total[pane.ComponentLook(p.Stage).Fill] += p.Dur
		}
	}
	for i, d := range total {
		if d > 0 {
			width += len(pane.PartName(i)) + 4
		}
	}
	const more = 2 // cells of the ellipsis
	omitted := 0
	if width-2 > a.W {
		omitted = more
	}
	for width-2 > a.W-omitted {
		least := -1
		for i, d := range total {
			if d > 0 && (least < 0 || d < total[least]) {
				least = i
			}
		}
		total[least] = 0
		width -= len(pane.PartName(least)) + 4
	}
	l := a.Line(0, y)
	for i, d := range total {
		if d <= 0 {
			continue
		}
		k := pane.Component{Role: theme.PartRoles()[i], Name: pane.PartName(i), Fill: i}
		l.Rune(grid.Fg(k.Role), pane.PartSwatch(f, k)).Gap(1).Put(pane.Dim, pane.PartName(i)).Gap(2)
	}
	if omitted > 0 {
		l.Rune(pane.Dim, f.Skin.Glyphs.Ellipsis)
	}
	if note := "cold: own scale"; anyCold(shown) && l.Room() >= len(note) {
		a.Right(a.W, y, pane.Dim, note)
	}
}

func anyCold(shown []*store.Request) bool {
	for _, r := range shown {
		if r.Cold && r.TTFT.OK() {
			return true
		}
	}
	return false
}
