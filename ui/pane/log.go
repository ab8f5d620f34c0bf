package pane

import (
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// DrawLog draws the last lines of the engine log.
func DrawLog(a grid.Area, s *store.Snapshot, f *Frame) {
	if a.H < 2 {
		return
	}
	a.Text(0, 0, Heading, "Engine log")
	if len(s.Log) == 0 {
		a.Text(0, 1, Dim, "no lines yet")
	}
	lines := s.Log[max(len(s.Log)-(a.H-1), 0):]
	for i, l := range lines {
		a.Text(0, 1+i, Dim, Clock(SessionTime(s, l.At)))
		a.Elide(10, 1+i, a.W-10, Plain, sanitize.Line(l.Text), f.Skin.Glyphs.Ellipsis)
	}
}
