package overview

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// drawDrafts writes what speculation brings in one row.
func drawDrafts(r *pane.RowWriter, s *store.Snapshot) {
	if s.Speculation == nil {
		return
	}
	p := metric.ProfitOf(s.Speculation)
	l := r.Next("drafts").Line(1, 0)
	l.Put(pane.Data, metric.Reading(p.Accepted, metric.Percent)).Put(pane.Dim, " accepted")
	if p.Gain.OK() {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "  gain "}, grid.Piece{Style: gainStyle(p.Gain), Words: metric.Rate(p.Gain.V) + "x"})
	}
}

// gainStyle colours a gain: above 1 it is one.
func gainStyle(gain event.Reading) grid.Style {
	if gain.V < 1 {
		return pane.Watch
	}
	return pane.Good
}

// drawSpeculation lists the share of accepted tokens by position in the draft, and what they bring.
func drawSpeculation(r *pane.RowWriter, s *store.Snapshot, f *pane.Frame) {
	x := s.Speculation
	if x == nil || r.Y+4 > r.A.H {
		return
	}
	r.Y++
	p := metric.ProfitOf(x)
	words := "unknown: " + p.Missing
	if p.Gain.OK() {
		words = metric.Rate(p.Gain.V) + "x the speed of " + verdict.Compared(&p)
	}
	r.Words(f, "per pass", metric.Reading(p.PerPass, metric.Rate)+" tokens; drafts take "+metric.Reading(p.DraftShare, metric.Percent)+" of the time")
	r.Words(f, "gain", words)
	for i, n := range x.Drafted {
		if n == 0 {
			continue
		}
		a := r.Next("token " + strconv.Itoa(i+1))
		share := metric.Share(float64(x.Accepted[i]), float64(n))
		a.Right(pane.ValueWidth, 0, pane.Data, metric.Percent(share))
		a.Bar(pane.ValueWidth+1, 0, a.W-pane.ValueWidth-1, share, theme.SeriesDecode, f.Skin.Colour(), f.Skin.Glyphs)
	}
}
