package panes

import (
	"math"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// replayState writes position, length and speed of the replay.
func (c *Ctx) replayState(l *grid.Line, p *recording.PlayStatus) {
	gl := c.Skin.Glyphs
	mark, word, st := gl.Play, "REPLAY", good
	switch p.State {
	case recording.Paused:
		mark, st = gl.Paused, watch
	case recording.Seeking:
		mark, st = gl.Arrow, grid.Fg(theme.Accent)
	case recording.Ended:
		mark, st = gl.Idle, dim
	}
	st = st.With(grid.Bold)
	l.Rune(st, mark).Gap(1).Put(st, word).Gap(1)
	l.Put(loud, clock(time.Duration(p.Now-p.Begin))).Put(dim, "/").Put(text, clock(time.Duration(p.End-p.Begin))).Gap(1)
	l.Put(text, c.speed(p.Speed)).Gap(1).Put(st, p.State.String()).Gap(2)
}

// speed formats the replay speed as a multiple of real time.
func (c *Ctx) speed(x float64) string {
	if math.IsInf(x, 1) {
		return "unpaced"
	}
	return strconv.FormatFloat(x, 'g', 4, 64) + c.Skin.Glyphs.Times
}
