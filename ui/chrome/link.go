package chrome

import (
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Unreachable is the state of an engine that has never answered.
const Unreachable = "UNREACHABLE"

// LinkState returns how to show a broken connection to an engine in another process; broken is false if the connection is
// fine.
func LinkState(s *store.Snapshot, f *pane.Frame) (mark rune, words string, st grid.Style, broken bool) {
	gl, r := f.Skin.Glyphs, &s.Engine.Remote
	if s.NeverPolled() {
		return 0, "", pane.Plain, false
	}
	switch r.Link {
	case event.LinkStale:
		return gl.Watch, "STALE since " + WallClock(s, r.Since), pane.Watch, true
	case event.LinkDisconnected:
		if s.NeverReached() {
			return gl.Failed, Unreachable + " since llmtop started", pane.Bad, true
		}
		return gl.Failed, "DISCONNECTED since " + WallClock(s, r.Since), pane.Bad, true
	case event.LinkRefused:
		return gl.Failed, "REFUSED", pane.Bad, true
	case event.LinkWaiting:
		return gl.Spinner[f.Spin%len(gl.Spinner)], "WAITING for " + sanitize.Line(r.Address), pane.Watch, true
	}
	return 0, "", pane.Plain, false
}

// WallClock returns the time of day of a moment of the session.
func WallClock(s *store.Snapshot, at event.Time) string {
	return s.Wall.Add(time.Duration(at - s.Now)).Format(time.TimeOnly)
}

// LinkError returns why there is no connection, or its address if the reason is unknown; ok is false if the connection
// is fine.
func LinkError(s *store.Snapshot, f *pane.Frame) (words string, st grid.Style, ok bool) {
	r := &s.Engine.Remote
	switch {
	case !r.Link.Down(), s.NeverPolled():
		return "", pane.Plain, false
	case r.Link == event.LinkWaiting:
		return sanitize.Line(r.Reason), pane.Dim, true
	case r.Reason != "":
		return sanitize.Line(r.Reason), pane.Bad, true
	}
	return sanitize.Line(r.Address), pane.Bad, r.Address != ""
}

// DrawWaiting draws, in place of a view, that an engine of this machine has not started yet; false if it has.
func DrawWaiting(a grid.Area, s *store.Snapshot, f *pane.Frame) bool {
	r := &s.Engine.Remote
	if r.Link != event.LinkWaiting || !s.NeverReached() {
		return false
	}
	at, do := sanitize.Line(r.Address), "It is shown as soon as it starts."
	if !strings.Contains(at, ":") {
		do += " For a server, type its address: llmtop attach HOST:PORT"
	}
	f.Absent(a, pane.Plain, "waiting for "+at, sanitize.Line(r.Reason)+". "+do)
	return true
}

// DropCounts returns the counts of dropped, missed and malformed events that are above 0; without any it returns zeros.
// whole is true if nothing is missing.
func DropCounts(s *store.Snapshot, f *pane.Frame) (words string, whole bool) {
	r, dropped := &s.Engine.Remote, s.Drops.Total()
	whole = dropped == 0 && r.Missed == 0 && r.Malformed == 0
	remote := r.Link != event.LinkNone
	for _, n := range [...]struct {
		name  string
		count float64
		zero  bool // shown at 0 too, if nothing is missing
	}{{"dropped ", float64(dropped), true}, {"missed ", float64(r.Missed), remote}, {"malformed ", float64(r.Malformed), remote}} {
		if n.count == 0 && !(whole && n.zero) {
			continue
		}
		if words != "" {
			words += " " + string(f.Skin.Glyphs.Bullet) + " "
		}
		words += n.name + metric.Count(n.count)
	}
	return words, whole
}

// LinkWarnings describes problems of the connection.
func LinkWarnings(s *store.Snapshot, f *pane.Frame) (out []string) {
	r := &s.Engine.Remote
	at := sanitize.Line(r.Address)
	switch r.Link {
	case event.LinkStale:
		out = append(out, "no data from "+at+" since "+WallClock(s, r.Since)+": showing the last values")
	case event.LinkDisconnected:
		words := "not connected to " + at + ": " + sanitize.Line(r.Reason) + "; retrying"
		switch {
		case s.NeverPolled():
			return nil
		case !s.NeverReached():
			words += "; showing the last values"
		}
		out = append(out, words)
	case event.LinkRefused:
		out = append(out, "refused by "+at+": "+sanitize.Line(r.Reason))
	}
	return out
}

// Problems describes what is wrong with the recording that is written or played.
func (t *Status) Problems() (out []string) {
	if t.Record.Why != "" {
		out = append(out, "recording stopped: "+t.Record.Why)
	}
	if p := t.Replay; p != nil {
		out = append(out, p.Problems()...)
		if n := p.Dropped.Total(); n > 0 && t.Engine != "" { // a single engine includes them in its own drops
			out = append(out, "the recording lacks "+pane.CountOf(n, "event", "events")+" of these engines: writing to disk was too slow")
		}
		if p.TotalsSince > p.Begin {
			out = append(out, "totals start at "+pane.Clock(time.Duration(p.TotalsSince-p.Begin))+" of the recording")
		}
	}
	return out
}

// DrawWarnings writes the problems of the data, not of the engine: of the connection, of received traces and of the
// recording. It returns the rows used.
func DrawWarnings(a grid.Area, s *store.Snapshot, f *pane.Frame) int {
	y := 0
	for _, n := range slices.Concat(LinkWarnings(s, f), store.SourceLosses(s), f.Problems) {
		for i, line := range grid.Wrap(nil, n, a.W-2) {
			if i == 0 {
				a.Cell(0, y, pane.Bad.With(grid.Bold), f.Skin.Glyphs.Bad)
			}
			a.Text(2, y, grid.Fg(theme.Bad), line)
			y++
		}
	}
	return y
}

// NotKept is the snapshot of an engine for which no history is kept at the selected moment.
var NotKept = func() *store.Snapshot {
	s := store.Empty()
	s.Engine.Caps = event.CapAggregates
	return s
}()
