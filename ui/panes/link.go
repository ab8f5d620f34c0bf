package panes

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// RecordNote is what is said of a recording; no words: there is none.
type RecordNote struct {
	Words string // for the header
	Why   string // what ended it, sanitised
	Bad   bool   // something is missing in it, or it has ended
}

func (n RecordNote) style() grid.Style {
	if n.Bad {
		return bad.With(grid.Bold)
	}
	return text
}

// link is how the connection to an engine in another process is shown, if it is not what it should be.
func (c *Ctx) link(s *store.Snapshot) (mark rune, words string, st grid.Style, broken bool) {
	gl, r := c.Skin.Glyphs, &s.Engine.Remote
	if s.Unasked() {
		return 0, "", text, false
	}
	switch r.Link {
	case event.LinkStale:
		return gl.Watch, "STALE since " + timeOf(s, r.Since), watch, true
	case event.LinkDisconnected:
		if s.Unreached() {
			return gl.Failed, "NOT REACHED since llmtop began", bad, true
		}
		return gl.Failed, "DISCONNECTED since " + timeOf(s, r.Since), bad, true
	case event.LinkRefused:
		return gl.Failed, "REFUSED", bad, true
	}
	return 0, "", text, false
}

// timeOf is the time of day of a moment of the session.
func timeOf(s *store.Snapshot, at event.Time) string {
	return s.Wall.Add(time.Duration(at - s.Now)).Format(time.TimeOnly)
}

// trouble is why there is no connection, or what there is none with where the reason is not known.
func (c *Ctx) trouble(s *store.Snapshot) (words string, st grid.Style, ok bool) {
	r := &s.Engine.Remote
	switch {
	case r.Link != event.LinkDisconnected && r.Link != event.LinkRefused, s.Unasked():
		return "", text, false
	case r.Why != "":
		return sanitize.Line(r.Why), bad, true
	}
	return sanitize.Line(r.Address), bad, r.Address != ""
}

// losses names what did not arrive, all of it where the connection to an engine in another process tells; whole if nothing is
// missing.
func (c *Ctx) losses(s *store.Snapshot) (words string, whole bool) {
	r, lost := &s.Engine.Remote, s.Lost.Total()
	words, whole = "lost "+metric.Count(float64(lost)), lost == 0 && r.Missing == 0 && r.Garbage == 0
	if r.Missing != 0 {
		words += " missing " + metric.Count(float64(r.Missing))
	}
	if r.Garbage != 0 {
		words += " garbage " + metric.Count(float64(r.Garbage))
	}
	if whole && r.Link != event.LinkNone {
		words += " missing 0 garbage 0"
	}
	return words, whole
}

// linkNotes are what is wrong with the connection.
func (c *Ctx) linkNotes(s *store.Snapshot) (out []string) {
	r := &s.Engine.Remote
	at := sanitize.Line(r.Address)
	switch r.Link {
	case event.LinkStale:
		out = append(out, "nothing has come from "+at+" since "+timeOf(s, r.Since)+": what is shown is what was known then")
	case event.LinkDisconnected:
		words := "not connected to " + at + ": " + sanitize.Line(r.Why) + "; trying again"
		switch {
		case s.Unasked():
			return nil
		case !s.Unreached():
			words += ", what is shown is what was known before"
		}
		out = append(out, words)
	case event.LinkRefused:
		out = append(out, "refused by "+at+": "+sanitize.Line(r.Why))
	}
	return out
}

// notes are what to know before any verdict: what is wrong with what is seen, rather than with the engine.
func (c *Ctx) notes(s *store.Snapshot) []string {
	out := append(c.linkNotes(s), lossNotes(s)...)
	if c.Record.Why != "" {
		out = append(out, "the recording has ended: "+c.Record.Why)
	}
	if p := c.Replay; p != nil {
		if n := p.Unread + uint64(p.Damage.Frames); n > 0 || p.Damage.Bytes > 0 {
			out = append(out, "the recording is damaged: "+metric.Count(float64(p.Damage.Frames))+" frames and "+
				metric.Count(float64(p.Unread))+" lines of it could not be read, "+metric.Bytes(float64(p.Damage.Bytes))+" are something else")
		}
		if n := p.Lost.Total(); n > 0 && c.Engine != "" { // one engine alone has it among its own
			out = append(out, "the recording lacks "+metric.Count(float64(n))+" events of these engines, which came faster than the disk took them")
		}
		if p.Missing > 0 {
			out = append(out, itoa(p.Missing)+" segments of the recording are missing")
		}
		if p.From > p.Begin {
			out = append(out, "totals count from "+clock(time.Duration(p.From-p.Begin))+" of the recording")
		}
	}
	return out
}

// drawNotes writes the notes and returns how many rows they took.
func (c *Ctx) drawNotes(a grid.Area, s *store.Snapshot) int {
	y := 0
	for _, n := range c.notes(s) {
		for i, line := range grid.Wrap(nil, n, a.W-2) {
			if i == 0 {
				a.Cell(0, y, bad.With(grid.Bold), c.Skin.Glyphs.Bad)
			}
			a.Text(2, y, grid.Fg(theme.Bad), line)
			y++
		}
	}
	return y
}
