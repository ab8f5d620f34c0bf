package chrome

import (
	"math"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// ReplayState writes position, length and speed of the replay.
func ReplayState(l *grid.Line, f *pane.Frame, p *recording.PlayStatus) {
	gl := f.Skin.Glyphs
	mark, word, st := gl.Play, "REPLAY", pane.Good
	switch p.State {
	case recording.Paused:
		mark, st = gl.Paused, pane.Watch
	case recording.Seeking:
		mark, st = gl.Arrow, grid.Fg(theme.Accent)
	case recording.Ended:
		mark, st = gl.Idle, pane.Dim
	}
	st = st.With(grid.Bold)
	l.Rune(st, mark).Gap(1).Put(st, word).Gap(1)
	l.Put(pane.Loud, pane.Clock(time.Duration(p.Now-p.Begin))).Put(pane.Dim, "/").Put(pane.Plain, pane.Clock(time.Duration(p.End-p.Begin))).Gap(1)
	l.Put(pane.Plain, formatSpeed(f, p.Speed)).Gap(1).Put(st, p.State.String()).Gap(2)
}

// formatSpeed formats the replay speed as a multiple of real time.
func formatSpeed(f *pane.Frame, x float64) string {
	if math.IsInf(x, 1) {
		return "unpaced"
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + f.Skin.Glyphs.Times
}
