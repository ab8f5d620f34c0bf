package panes

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// component is the name and the look of a TTFT component.
type component struct {
	role theme.Role
	name string
	fill int // index into Glyphs.Fills
}

// componentLook returns the look of a TTFT component; any other stage is "other".
func componentLook(st event.Stage) component {
	for i, s := range event.Components() {
		if s == st {
			return component{theme.PartRoles()[i], componentNames[i], i}
		}
	}
	return component{theme.PartOther, "other", 8}
}

var componentNames = [...]string{"load", "queue", "tokenize", "embed", "prompt", "first", "to device", "from device"}

func drawTTFT(a grid.Area, s *store.Snapshot, c *Ctx) {
	in := c.frame(a, "time to first token by component")
	if s.Engine.State <= event.EngineLoading && len(s.Requests) == 0 {
		drawLoad(in, s, c)
		return
	}
	if s.AggregateOnly() {
		c.aggregateTTFT(in, s)
		return
	}
	if len(s.Requests) == 0 {
		if !c.waiting(in, s) && !c.loadOnly(in, s, "no request yet") {
			c.absent(in, dim, "no request yet", c.Suggest)
		}
		return
	}
	bars, parts, foot := shareRows(in.H, s)
	shown := s.Requests[:bars]
	drawBars(in.Sub(0, 0, in.W, bars), shown, s.Engine.Caps, c)
	drawTTFTFoot(in.Sub(0, in.H-foot-parts, in.W, foot+parts), parts, shown, s, c)
	drawTarget(a, s, c)
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
	if r := withTTFT(s.Requests); r != nil && foot == 4 {
		parts = min(len(r.Parts), max(room-bars, room-fewBars))
		if parts < leastParts {
			return bars, 0, foot
		}
		bars = min(bars, room-parts)
	}
	return bars, parts, foot
}

// drawTarget writes the TTFT target and whether the last request met it into the border.
func drawTarget(a grid.Area, s *store.Snapshot, c *Ctx) {
	r := withTTFT(s.Requests)
	if r == nil || r.Targets.TTFT <= 0 || r.Cold {
		return
	}
	words := "target " + metric.Duration(int64(r.Targets.TTFT))
	if r.HitTarget {
		c.foot(a, good, words+" met "+string(c.Skin.Glyphs.Yes))
	} else {
		c.foot(a, bad, words+" missed "+string(c.Skin.Glyphs.No))
	}
}

// withTTFT returns the newest request with a first token, or nil.
func withTTFT(rs []*store.Request) *store.Request {
	for _, r := range rs {
		if r.TTFT.OK() {
			return r
		}
	}
	return nil
}

// drawBars draws one stacked bar per request on a common scale. A cold request, whose load would dwarf the others, has
// its own scale over the whole width.
func drawBars(a grid.Area, shown []*store.Request, caps event.Caps, c *Ctx) {
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
			drawPending(bar, y, r, caps, c)
			continue
		}
		own := r.TTFT.V
		if !r.Cold || own < top {
			own = top
		}
		c.stack(bar, y, r, own)
		a.Right(a.W-2, y, data, metric.Seconds(r.TTFT.V))
		switch {
		case r.Cold: // includes the model load; the target does not apply
		case r.HitTarget:
			a.Cell(a.W-1, y, good, c.Skin.Glyphs.Yes)
		default:
			a.Cell(a.W-1, y, bad, c.Skin.Glyphs.No)
		}
		if t := r.Targets.TTFT.Seconds(); t > 0 && t <= own {
			bar.Cell(int(t/own*float64(bar.W)), y, grid.Fg(theme.Data), c.Skin.Glyphs.Target)
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
	l.Put(text, "#"+strconv.Itoa(int(r.ID))).Gap(1)
	note := sanitize.Line(r.Label)
	if r.Cold {
		note = "cold"
	}
	if room := w - l.X - 1; room >= 4 {
		a.Elide(l.X, y, room, dim, note, '…')
	} else if r.Cold {
		a.Cell(w-1, y, dim, '*')
	}
}

// drawPending draws the row of a request without a first token.
func drawPending(a grid.Area, y int, r *store.Request, caps event.Caps, c *Ctx) {
	gl := c.Skin.Glyphs
	words := r.State.String()
	if r.State.Final() {
		if r.Reason != "" && r.Reason != words {
			words += ": " + sanitize.Line(r.Reason)
		}
		if r.State == event.StateFinished && !caps.Has(event.CapTokens) {
			words = "TTFT not reported by this engine"
		}
		a.Elide(0, y, a.W, stateStyle(r.State), words, gl.Ellipsis)
		return
	}
	spin := gl.Spinner[c.Spin%len(gl.Spinner)]
	a.Elide(0, y, a.W, stateStyle(r.State), string(spin)+" "+words, gl.Ellipsis)
}

// stack draws the components of a request's TTFT; top seconds fill the width.
func (c *Ctx) stack(a grid.Area, y int, r *store.Request, top float64) {
	segs := c.Scratch.Segs[:0]
	for _, p := range r.Parts {
		k := componentLook(p.Stage)
		segs = append(segs, grid.Seg{Share: p.Dur.Seconds() / top, Role: k.role, Fill: c.Skin.Glyphs.Fills[k.fill]})
	}
	if len(segs) == 0 {
		segs = append(segs, grid.Seg{Share: r.TTFT.V / top, Role: theme.PartOther, Fill: c.Skin.Glyphs.Fills[8]})
	}
	c.Scratch.Segs = segs
	a.Stack(0, y, a.W, segs, c.Skin.Colour(), c.Skin.Glyphs)
}

// drawTTFTFoot writes the dominant component, the table of parts rows, the percentiles and the legend, as many as fit.
func drawTTFTFoot(a grid.Area, parts int, shown []*store.Request, s *store.Snapshot, c *Ctx) {
	if a.H >= 4 {
		a = a.Sub(0, 1, a.W, a.H-1)
	}
	r := withTTFT(s.Requests)
	if r == nil {
		return
	}
	drawDominant(a, 0, r, c)
	if parts > 0 {
		drawParts(a.Sub(0, 1, a.W, parts), r, c)
		a = a.Sub(0, parts, a.W, a.H-parts)
	}
	if a.H >= 3 {
		drawQuantiles(a, 1, s, c)
	}
	if a.H >= 2 {
		drawLegend(a, a.H-1, shown, c)
	}
}

// drawDominant names the largest component of the newest TTFT.
func drawDominant(a grid.Area, y int, r *store.Request, c *Ctx) {
	l := a.Line(0, y)
	if r.Dominant.Share <= 0 {
		l.Put(dim, "#"+strconv.Itoa(int(r.ID))+": this engine does not report TTFT components")
		return
	}
	k := componentLook(r.Dominant.Stage)
	l.Put(dim, "#"+strconv.Itoa(int(r.ID))+" ").Put(data, k.name+" "+metric.Percent(r.Dominant.Share)).Put(text, " of TTFT")
	sep := " " + string(c.Skin.Glyphs.Bullet) + " "
	also := func(words string) { l.Fit(grid.Piece{Style: dim, Words: sep}, grid.Piece{Style: text, Words: words}) }
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

func drawQuantiles(a grid.Area, y int, s *store.Snapshot, c *Ctx) {
	l := a.Line(0, y)
	warm, cold := s.Latency.TTFT[c.Window], s.Latency.ColdTTFT[c.Window]
	if warm.Count > 0 {
		l.Put(dim, "warm")
		for _, q := range [...]struct {
			name string
			v    int64
		}{{" p50 ", warm.P50}, {"  p95 ", warm.P95}, {"  p99 ", warm.P99}} {
			l.Fit(grid.Piece{Style: dim, Words: q.name}, grid.Piece{Style: text, Words: metric.Duration(q.v)})
		}
		l.Gap(2)
	}
	if cold.Count > 0 {
		l.Fit(grid.Piece{Style: dim, Words: "cold "}, grid.Piece{Style: text, Words: metric.Duration(cold.Max) + "  "})
	}
	l.Fit(grid.Piece{Style: dim, Words: "(" + c.Window.String() + ")"})
}

// drawLegend names the components of the shown requests and notes the scale of cold bars. Where not all fit, the
// shortest are omitted.
func drawLegend(a grid.Area, y int, shown []*store.Request, c *Ctx) {
	var total [9]time.Duration
	width := 0
	for _, r := range shown {
		for _, p := range r.Parts {
			total[componentLook(p.Stage).fill] += p.Dur
		}
	}
	for i, d := range total {
		if d > 0 {
			width += len(partName(i)) + 4
		}
	}
	for width-2 > a.W {
		least := -1
		for i, d := range total {
			if d > 0 && (least < 0 || d < total[least]) {
				least = i
			}
		}
		total[least] = 0
		width -= len(partName(least)) + 4
	}
	l := a.Line(0, y)
	for i, d := range total {
		if d <= 0 {
			continue
		}
		k := component{theme.PartRoles()[i], partName(i), i}
		l.Rune(grid.Fg(k.role), c.swatch(k)).Gap(1).Put(dim, partName(i)).Gap(2)
	}
	if note := "cold: own scale"; anyCold(shown) && l.Room() >= len(note) {
		a.Right(a.W, y, dim, note)
	}
}

// partName returns the short name of the i-th component.
func partName(i int) string {
	if i < len(componentNames) {
		return componentNames[i]
	}
	return "other"
}

func anyCold(shown []*store.Request) bool {
	for _, r := range shown {
		if r.Cold && r.TTFT.OK() {
			return true
		}
	}
	return false
}
