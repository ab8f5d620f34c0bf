package system

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/request"
)

// chartsFrom is the minimum width for charts beside the gauge table.
const chartsFrom = 150

// drawSystem draws the machine: its cores, its GPUs if there are several, every gauge with its trend, and the gauges at the time of the selected token.
func drawSystem(a grid.Area, s *store.Snapshot, f *pane.Frame, name string, m *Table, v *request.View) {
	in := f.BoxAs(a, name, pane.WithAge([]string{"rates per second; typical and correlation over " + f.Window.String(), f.Window.String()}, sampleAge(s))...)
	if noMachine(in, s, f) {
		return
	}
	if v.Request != nil {
		v.ClampSelection()
		if !v.Chosen {
			v.Token = slowestKept(v.Request, s.Host.At)
		}
	}
	gap := min(in.H/30, 1)
	y := coreBars(in.Sub(0, 0, in.W, max(in.H/5, 1)), s, f) + gap
	if n := gpuTable(in.Sub(0, y, in.W, in.H-y), s, m); n > 0 {
		y += n + gap
	}
	at := systemToken(in.Sub(0, y, in.W, 1), s, f, v)
	y += 1 + gap
	body := in.Sub(0, y, in.W, in.H-y)
	w := body.W
	if body.W >= chartsFrom {
		w = body.W*62/100 - 2
		systemCharts(body.Sub(w+3, 0, body.W-w-3, body.H), s, f, m)
	}
	gaugeTable(body.Sub(0, 0, w, body.H), a, s, f, at, m, v)
}

// slowestKept returns the number of the token with the longest gap among the kept tokens up to a time, 0 if there are
// none.
func slowestKept(r *store.Request, until event.Time) (n int) {
	most := int64(-1)
	tokens := r.Tokens
	for i := range tokens {
		if t := &tokens[i]; t.Gap > most && t.At <= until {
			n, most = int(t.Nth), t.Gap
		}
	}
	return n
}

// DrawZoomed draws the System view as the zoomed Machine pane, with a token of the current request.
func DrawZoomed(a grid.Area, s *store.Snapshot, f *pane.Frame, m *Table) {
	drawSystem(a, s, f, f.Title, m, &request.View{Request: s.Current, Static: true})
}

// coreBars draws a bar with the clock of each core, several per row, or one column per core where bars need too many
// rows. It returns the rows used.
func coreBars(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	const least = 24
	cores, gl := s.Host.Cores, f.Skin.Glyphs
	n := len(cores)
	if n == 0 {
		a.Text(0, 0, pane.Dim, "cores: "+s.Host.CPU.Absence())
		return 1
	}
	perRow := max(min(n, (a.W+2)/least), 1)
	high := (n + perRow - 1) / perRow
	perRow = (n + high - 1) / high
	if high > a.H {
		r := pane.RowWriter{A: a}
		drawCoreColumns(&r, cores, gl)
		return max(r.Y, 1)
	}
	w := (a.W + 2) / perRow
	for i, share := range cores {
		cell := a.Sub(i%perRow*w, i/perRow, w-2, 1)
		end := cell.W
		if i < len(s.Host.Clocks) && w >= 34 {
			cell.Right(end, 0, pane.Dim, hertz(s.Host.Clocks[i]))
			end -= 9
		}
		cell.Right(3, 0, pane.Dim, strconv.Itoa(i))
		cell.Right(end, 0, pane.Plain, metric.Percent(share))
		cell.Bar(4, 0, end-4-7, share, theme.SeriesPrefill, f.Skin.Colour(), gl)
	}
	return high
}

// systemToken describes the selected token and why it was slow, and returns the host sample that covers it, or nil.
func systemToken(a grid.Area, s *store.Snapshot, f *pane.Frame, v *request.View) *store.HostPoint {
	l := a.Line(0, 0)
	r := v.Request
	if r == nil || len(r.Tokens) == 0 {
		words := "no token to inspect yet"
		if s.Engine.Caps != 0 && !s.Engine.Caps.Has(event.CapTokens) {
			words = "tokens: not reported by this engine"
		}
		if r != nil {
			words = "no token of #" + strconv.Itoa(int(r.ID)) + " to inspect"
		}
		l.Put(pane.Dim, words)
		return nil
	}
	l.Put(pane.Heading, "Token "+strconv.Itoa(v.Token)+" of #"+strconv.Itoa(int(r.ID))).Gap(2)
	if !v.Chosen {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "the slowest  "})
	}
	gap, known := request.GapBefore(r, v.Token)
	if known {
		ratio := float64(gap) / max(float64(r.ITL.P50), 1)
		l.Put(pane.Loud, metric.Duration(gap)).Gap(1)
		l.Fit(grid.Piece{Style: pane.GapStyle(ratio), Words: metric.Rate(ratio) + f.Skin.Glyphs.Times}, grid.Piece{Style: pane.Dim, Words: " the median  "})
		why, st := request.Cause(f, r, v.Token, ratio)
		if st == pane.Dim {
			why = ""
		}
		defer func() { a.Elide(l.X, 0, max(a.W-l.X, 0), st, why, f.Skin.Glyphs.Ellipsis) }()
	}
	t := request.KeptToken(r, v.Token)
	if t == nil {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "its time was evicted  "})
		return nil
	}
	l.Fit(grid.Piece{Style: pane.Dim, Words: "at "}, grid.Piece{Style: pane.Plain, Words: pane.Clock(pane.SessionTime(s, t.At)) + "  "})
	p, ok := s.Host.SampleAt(t.At)
	switch {
	case ok:
		return p
	case t.At > s.Host.At:
		l.Fit(grid.Piece{Style: pane.Dim, Words: "waiting for the next sample  "})
	default:
		l.Fit(grid.Piece{Style: pane.Dim, Words: "no host sample at that time  "})
	}
	return nil
}

// systemCharts draws the most important series one below another: ITL and the resources that tokens wait for. The last
// row names those that have had no value above 0.
func systemCharts(a grid.Area, s *store.Snapshot, f *pane.Frame, m *Table) {
	if len(s.Host.Series) < 2 {
		f.Absent(a, pane.Dim, "charts start with the second sample", "")
		return
	}
	curve := func(gauges ...event.Gauge) func(p *store.HostPoint, k int) float64 {
		return func(p *store.HostPoint, k int) float64 { return p.V[gauges[k]] }
	}
	charts := [...]hostCurves{
		{"ITL", []string{"mean per second"}, []theme.Role{theme.SeriesP99}, func(p *store.HostPoint, _ int) float64 { return p.ITL }, pane.TimeAxis},
		{"GPU", []string{"busy", "engine"}, []theme.Role{theme.SeriesPrefill, theme.SeriesDecode}, curve(event.GaugeGPU, event.GaugeGPUEngine), pane.ShareAxis},
		{"Cores", []string{"engine", "run wait"}, []theme.Role{theme.SeriesDecode, theme.SeriesWrite}, curve(event.GaugeEngineCPU, event.GaugeRunWait), pane.CountAxis},
		{"Memory", []string{"engine RSS"}, []theme.Role{theme.SeriesP50}, curve(event.GaugeRSS), pane.ByteAxis},
		{"Disk", []string{"read/s", "write/s"}, []theme.Role{theme.SeriesRead, theme.SeriesWrite}, curve(event.GaugeRead, event.GaugeWrite), pane.ByteAxis},
		{"Network", []string{"received/s", "sent/s"}, []theme.Role{theme.SeriesRead, theme.SeriesWrite}, curve(event.GaugeReceived, event.GaugeSent), pane.ByteAxis},
	}
	none := ""
	shown := slices.DeleteFunc(charts[:], func(k hostCurves) bool {
		if k.title == "GPU" && len(s.Host.GPUs) == 0 {
			return true
		}
		if !m.charted[k.title] && !slices.ContainsFunc(s.Host.Series, func(p store.HostPoint) bool {
			return k.at(&p, 0) > 0 || len(k.names) > 1 && k.at(&p, 1) > 0
		}) {
			none += ", " + k.title
			return true
		}
		if m.charted == nil {
			m.charted = make(map[string]bool)
		}
		m.charted[k.title] = true
		return false
	})
	if none != "" {
		a.Elide(0, a.H-1, a.W, pane.Dim, "all zero, or "+event.NotReported.String()+": "+none[2:], f.Skin.Glyphs.Ellipsis)
		a = a.Sub(0, 0, a.W, a.H-1)
	}
	n := min(max(a.H/7, 1), len(shown))
	for i := range n {
		from, to := a.H*i/n, a.H*(i+1)/n
		k := &shown[i]
		hostChart(a.Sub(0, from, a.W, to-from-1), s, f, k)
	}
}

// hostCurves are curves over the host samples: each has a name and a colour.
type hostCurves struct {
	title string
	names []string
	roles []theme.Role
	at    func(p *store.HostPoint, k int) float64 // curve k; NaN: unknown
	units []pane.Unit
}

// hostChart draws curves under a title with their names in their colours.
func hostChart(a grid.Area, s *store.Snapshot, f *pane.Frame, curves *hostCurves) {
	pts, roles, at := s.Host.Series, curves.roles, curves.at
	l := a.Line(0, 0)
	l.Put(pane.Heading, curves.title).Gap(2)
	for k, n := range curves.names {
		l.Put(grid.Fg(roles[k]), n).Gap(2)
	}
	pts = pts[max(len(pts)-a.W, 0):]
	top := 0.0
	for k := range roles {
		top = max(top, pane.ScaleTop(len(pts), func(i int) float64 { return at(&pts[i], k) }))
	}
	if top <= 0 {
		a.Text(0, 1, pane.Dim, "all zero")
		return
	}
	grid.Curves{
		N: len(pts), Top: top, Roles: roles,
		Label: pane.AxisLabel(curves.units, top), Log: f.LogAxis, Fill: len(roles) == 1,
		At: func(k, i int) float64 { return at(&pts[i], k) },
	}.Draw(a.Sub(0, 1, a.W, a.H-1), f.Skin)
}
