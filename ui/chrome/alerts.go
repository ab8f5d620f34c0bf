package chrome

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// FiringAlerts returns the header text for firing alerts, in full and short; both are "" if no alert fires.
func (t *Status) FiringAlerts() (words, short string) {
	n, name := 0, ""
	for i := range t.Alerts {
		if a := &t.Alerts[i]; a.State == alert.Firing {
			n++
			name = sanitize.Line(a.Name)
		}
	}
	switch n {
	case 0:
		return "", ""
	case 1:
		return "ALERT " + name, "ALERT"
	}
	return strconv.Itoa(n) + " ALERTS", strconv.Itoa(n) + " ALERTS"
}

// Maximum size of the box of DrawAlerts, in cells.
const (
	alertsWidth  = 104
	alertsHeight = 20
)

// DrawAlerts lists all rules and their states in the lower right corner of an area, firing rules first, and returns
// the place of the list.
func DrawAlerts(all grid.Area, f *pane.Frame, alerts []alert.Status) grid.Rect {
	a := corner(all, alertsWidth, min(max(len(alerts)+3, 6), alertsHeight))
	in := f.BoxAs(a, "Alerts")
	f.Foot(a, pane.Dim, "esc close")
	if len(alerts) == 0 {
		f.Absent(in, pane.Dim, "no alerts configured", `add to the config file: [[alert]] name = "slow", when = "ttft_p99 > 500ms", for = "10s"`)
		return a.Rect
	}
	for _, h := range [...]struct {
		x    int
		word string
	}{{0, "state"}, {alertSince, "since"}, {alertName, "name"}, {alertValue, "value"}, {alertWhen, "condition"}} {
		in.Text(h.x, 0, pane.Heading, h.word)
	}
	y := 1
	for _, state := range [...]alert.State{alert.Firing, alert.Pending, alert.Resolved, alert.Quiet} {
		for i := range alerts {
			if alerts[i].State == state {
				drawAlert(in.Sub(0, y, in.W, 1), f, &alerts[i])
				y++
			}
		}
	}
	if hidden := len(alerts) - (in.H - 1); hidden > 0 {
		in.Right(in.W, in.H-1, pane.Dim, strconv.Itoa(hidden+1)+" more")
	}
	return a.Rect
}

// Start columns of the table; the state is at column 0.
const (
	alertSince = 10
	alertName  = 18
	alertValue = 40
	alertWhen  = 52
)

// drawAlert draws the row of a rule.
func drawAlert(a grid.Area, f *pane.Frame, s *alert.Status) {
	dots := f.Skin.Glyphs.Ellipsis
	st := [...]grid.Style{alert.Quiet: pane.Dim, alert.Pending: pane.Watch, alert.Firing: pane.Bad.With(grid.Bold), alert.Resolved: grid.Fg(theme.Good)}[s.State]
	a.Fill(0, 0, a.W, pane.Plain, ' ')
	a.Text(0, 0, st, s.State.String())
	if s.State != alert.Quiet {
		a.Text(alertSince, 0, pane.Plain, metric.Duration(int64(time.Duration(s.Now-s.Since).Truncate(time.Second))))
	}
	name := sanitize.Line(s.Name)
	if s.Engine != "" {
		name += " " + string(f.Skin.Glyphs.Bullet) + " " + sanitize.Line(s.Engine)
	}
	a.Elide(alertName, 0, alertValue-alertName-1, pane.Plain, name, dots)
	a.Elide(alertValue, 0, alertWhen-alertValue-1, pane.Data, s.Value, dots)
	words := s.When
	if s.For > 0 {
		words += " for " + s.For.String()
	}
	words += ", " + s.Window.String()
	if s.Fired > 0 {
		words += "; fired " + strconv.FormatUint(s.Fired, 10) + f.Skin.Glyphs.Times
	}
	a.Elide(alertWhen, 0, a.W-alertWhen, pane.Dim, words, dots)
}
