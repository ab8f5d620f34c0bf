package chrome

import (
	"math"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// Timeline is the selected moment of the history, and the range that is kept.
type Timeline struct {
	From, To, At event.Time
	Wall         time.Time // wall clock at the selected moment
	Ago          time.Duration
	Evicted      bool // the moment was evicted; only the current frame is left
}

// DrawTimeline draws a line from the oldest kept moment to the present, with the selected moment and the marks, and
// returns its screen position.
func DrawTimeline(a grid.Area, f *pane.Frame, t *Timeline) grid.Rect {
	st := pane.Watch.With(grid.Bold)
	l := a.Line(1, 0)
	l.Rune(st, f.Skin.Glyphs.Paused).Gap(1).Put(st, "paused").Gap(1)
	bullet := string(f.Skin.Glyphs.Bullet) + " "
	l.Put(pane.Dim, bullet).Put(pane.Loud, pane.Ago(t.Ago)).Gap(1).Put(pane.Dim, bullet).Put(pane.Plain, t.Wall.Format("15:04:05")).Gap(2)
	reach := metric.Duration(int64(time.Duration(t.To-t.From).Round(time.Second))) + " back"
	if t.Evicted {
		reach = "evicted: only this frame is left"
	}
	right := a.W
	if l.Room() > grid.Width(reach)+12 {
		right = a.Right(a.W-1, 0, pane.Dim, reach) - 1
	}
	line := a.Sub(l.X, 0, right-l.X, 1)
	drawTrack(line, f, t.From, t.To, t.At, true)
	return line.Rect
}

// DrawProgress draws the position of a replay as a line over the whole width, with the marks, and returns its screen
// position.
func DrawProgress(a grid.Area, f *pane.Frame, p *recording.PlayStatus) grid.Rect {
	line := a.Inset(1, 0)
	drawTrack(line, f, p.Begin, p.End, p.Now, false)
	return line.Rect
}

// drawTrack draws a time range, the part before at, the marks, and a cursor at at if wanted.
func drawTrack(line grid.Area, f *pane.Frame, from, to, at event.Time, cursor bool) {
	if line.W < 1 {
		return
	}
	place := func(t event.Time) int {
		if to <= from {
			return 0
		}
		return int(math.Round(min(max(float64(t-from)/float64(to-from), 0), 1) * float64(line.W)))
	}
	gl := f.Skin.Glyphs
	done := place(at)
	line.Fill(0, 0, done, grid.Fg(theme.Accent), gl.Thick)
	line.Fill(done, 0, line.W-done, grid.Fg(theme.Track), gl.Horizontal)
	for _, m := range f.Marks {
		if now := m.Snapshot.Now; now >= from && now <= to {
			line.Cell(min(place(now), line.W-1), 0, pane.Watch.With(grid.Bold), gl.Up)
		}
	}
	if cursor {
		line.Cell(min(done, line.W-1), 0, pane.Loud, gl.Live)
	}
}
