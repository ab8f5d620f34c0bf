package chrome

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// Maximum size of the box of DrawSince, in cells.
const (
	sinceWidth  = 62
	sinceHeight = 19
)

// DrawSince draws the changes since the newest mark into the lower right corner of an area, and returns their place.
func DrawSince(all grid.Area, s *store.Snapshot, f *pane.Frame) grid.Rect {
	m := f.Mark()
	a := corner(all, sinceWidth, sinceHeight)
	in := f.BoxAs(a, "Since "+m.Name, "set at "+m.Snapshot.Wall.Format("15:04:05"))
	d := s.ChangesSince(m.Snapshot)
	if d.Restarted {
		why := "the engine restarted after " + m.Name
		if s.Now < m.Snapshot.Now {
			why = "this moment is before " + m.Name
		}
		f.Absent(in, pane.Dim, why, "nothing to compare")
		return a.Rect
	}
	f.Foot(a, pane.Dim, "esc close  u clear marks")
	t := sinceTable{Area: in, f: f}
	t.heads("before", "since", "change")
	t.time(d)
	t.requests(d)
	t.latency("TTFT", &d.TTFT)
	t.latency("TPOT", &d.TPOT)
	t.latency("ITL", &d.ITL)
	t.rest(d)
	return a.Rect
}

// corner clears the lower right corner of an area for a pop-up of a size and returns it.
func corner(all grid.Area, w, h int) grid.Area {
	w, h = min(w, all.W), min(h, all.H)
	a := all.Sub(all.W-w, all.H-h, w, h)
	for y := range a.H {
		a.Fill(0, y, a.W, pane.Plain, ' ')
	}
	return a
}

// sinceTable is a table of values before and since a mark.
type sinceTable struct {
	grid.Area
	f *pane.Frame
	y int
}

// End columns of a sinceTable.
const (
	colBefore = 28
	colSince  = 42
	colChange = 56
)

func (t *sinceTable) heads(words ...string) {
	for i, at := range [...]int{colBefore, colSince, colChange} {
		t.Right(at, 0, pane.Heading, words[i])
	}
	t.y++
}

// row writes one row, if there is room.
func (t *sinceTable) row(name, before, since string, change string, st grid.Style) {
	if t.y >= t.H {
		return
	}
	t.Text(0, t.y, pane.Dim, name)
	t.Right(colBefore, t.y, pane.Plain, before)
	t.Right(colSince, t.y, pane.Data, since)
	t.Right(colChange, t.y, st, change)
	t.y++
}

func (t *sinceTable) time(d *store.Changes) {
	t.row("time", metric.Duration(int64(d.ElapsedBefore)), metric.Duration(int64(d.Elapsed)), "", pane.Dim)
}

func (t *sinceTable) requests(d *store.Changes) {
	count := func(name string, before, since uint64, st grid.Style) {
		t.row(name, metric.Count(float64(before)), metric.Count(float64(since)), "", st)
	}
	count("requests finished", d.EndedBefore.Finished, d.Ended.Finished, pane.Dim)
	if d.EndedBefore.Failed+d.Ended.Failed > 0 {
		count("failed", d.EndedBefore.Failed, d.Ended.Failed, pane.Bad)
	}
	if d.EndedBefore.Cancelled+d.Ended.Cancelled > 0 {
		count("cancelled", d.EndedBefore.Cancelled, d.Ended.Cancelled, pane.Dim)
	}
	if d.EndedBefore.Unseen+d.Ended.Unseen > 0 {
		count("end unseen", d.EndedBefore.Unseen, d.Ended.Unseen, pane.Dim)
	}
	count("tokens generated", d.GeneratedBefore, d.Generated, pane.Dim)
	change := ""
	if d.Rate.OK() && d.RateBefore.OK() && d.RateBefore.V > 0 {
		change = t.change(d.RateBefore.V, d.Rate.V)
	}
	t.row("tokens/s", metric.Reading(d.RateBefore, metric.Rate), metric.Reading(d.Rate, metric.Rate), change, pane.Plain) // depends on demand
}

func (t *sinceTable) latency(name string, d *store.BeforeAfter) {
	before, since := &d.Before, &d.Since
	for _, q := range [...]struct {
		name          string
		before, since int64
		differs       bool
	}{{" p50", before.P50, since.P50, d.P50}, {" p99", before.P99, since.P99, d.P99}} {
		was, is, change, st := "none", "none", "", pane.Dim
		if before.Count > 0 {
			was = metric.Duration(q.before)
		}
		if since.Count > 0 {
			is = metric.Duration(q.since)
		}
		if before.Count > 0 && since.Count > 0 && q.before > 0 {
			change, st = t.change(float64(q.before), float64(q.since)), pane.Plain
			if q.differs {
				st = growthStyle(float64(q.before), float64(q.since))
			}
		}
		t.row(name+q.name, was, is, change, st)
	}
}

// rest writes stalls, memory, routing drift and dropped events.
func (t *sinceTable) rest(d *store.Changes) {
	st := pane.Dim
	if d.MoreStalls() {
		st = pane.Watch
	}
	t.row("stalls", metric.Count(float64(d.StallsBefore)), metric.Count(float64(d.Stalls)), "", st)
	change := ""
	if d.RSS.OK() && d.RSSBefore.OK() && d.RSSBefore.V > 0 {
		change, st = t.change(d.RSSBefore.V, d.RSS.V), growthStyle(d.RSSBefore.V, d.RSS.V)
	}
	t.row("memory", metric.Reading(d.RSSBefore, metric.Bytes), metric.Reading(d.RSS, metric.Bytes), change, st)
	if d.MostDrifted >= 0 {
		where, st := "layer "+strconv.Itoa(d.MostDrifted), pane.Data
		if !d.Drifted {
			where, st = "by chance", pane.Dim
		}
		t.row("routing drift", "", where, metric.Percent(d.Drift[d.MostDrifted].V), st)
	}
	st = pane.Dim
	if d.Dropped > 0 {
		st = pane.Bad
	}
	t.row("events dropped", metric.Count(float64(d.DroppedBefore)), metric.Count(float64(d.Dropped)), "", st)
}

// notable is the relative change above which a value is coloured.
const notable = 0.1

// growthStyle colours a notable change of a value that is better when small.
func growthStyle(before, since float64) grid.Style {
	switch by := since/before - 1; {
	case by > notable:
		return pane.Watch
	case by < -notable:
		return grid.Fg(theme.Good)
	}
	return pane.Plain
}

// change returns the relative change of a value.
func (t *sinceTable) change(before, since float64) string {
	by := since/before - 1
	if by >= 10 {
		return metric.Rate(by+1) + t.f.Skin.Glyphs.Times
	}
	sign := ""
	if by >= 0 {
		sign = "+"
	}
	return sign + metric.Percent(by)
}
