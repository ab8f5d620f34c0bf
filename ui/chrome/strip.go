package chrome

import (
	"regexp"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// evidenceViews are the names of the views that show the numbers behind a verdict, by its topic.
var evidenceViews = map[string]string{
	"TTFT": "Requests", "queue": "Requests", "token gaps": "Latency", "lost time": "System", "decode": "System", "memory": "System",
	"KV cache": "Requests", "preemptions": "Requests", "engine": "Engines",
}

// DrawVerdict draws one line that says whether the engine serves as it should: since when not, why, and what to try; or
// why there is no verdict, as while the connection is broken. key returns the key of a view by its name, "" if the view
// is not offered.
func DrawVerdict(a grid.Area, s *store.Snapshot, c *pane.Frame, key func(view string) string) {
	h := s.Health
	l := a.Line(1, 0)
	elided := func(st grid.Style, words string, w int) { l.X += a.Elide(l.X, 0, w, st, words, c.Skin.Glyphs.Ellipsis) }
	if why := unjudged(s, c); why != "" {
		l.Put(pane.Dim, why)
		return
	}
	words, outdated := strings.CutSuffix(sanitize.Line(h.Verdict.Text), verdict.Past)
	past := ""
	if outdated {
		past = verdict.Past
	}
	if h.Status == verdict.Healthy {
		l.Rune(pane.Good.With(grid.Bold), c.Skin.Glyphs.Good).Gap(1).Put(pane.Good.With(grid.Bold), "HEALTHY").Gap(2)
		elided(pane.Dim, words, l.Room()-grid.Width(past))
		elided(pane.Dim, past, l.Room())
		return
	}
	st, mark := pane.Watch.With(grid.Bold), c.Skin.Glyphs.Watch
	if h.Verdict.Severity == verdict.Bad {
		st, mark = pane.Bad.With(grid.Bold), c.Skin.Glyphs.Bad
	}
	if to := key(evidenceViews[h.Verdict.Topic]); to != "" {
		a = a.Sub(0, 0, a.Right(a.W-1, 0, pane.Dim, "see "+to)-1, 1)
		l = a.Line(1, 0)
	}
	l.Rune(st, mark).Gap(1).Put(st, "DEGRADED")
	l.Put(pane.Plain, " since "+s.Wall.Add(-time.Duration(s.Now-h.Verdict.Since)).Format("15:04:05")+": ")
	try := ""
	if h.Verdict.Try != "" {
		try = " " + string(c.Skin.Glyphs.Arrow) + " " + sanitize.Line(h.Verdict.Try)
	}
	if grid.Width(words)+grid.Width(past)+grid.Width(try) > l.Room() { // half a cause and half a remedy help nobody
		try = ""
	}
	if grid.Width(words)+grid.Width(past) > l.Room() {
		words = asides.ReplaceAllString(words, "")
	}
	elided(pane.Data, cutWords(words, l.Room()-grid.Width(past), c.Skin.Glyphs.Ellipsis), l.Room())
	elided(pane.Dim, past, l.Room())
	l.Put(pane.Plain, try)
}

// unjudged returns why there is no verdict on an engine, "" if there is one. The last verdict before the connection broke
// says nothing about the engine now.
func unjudged(s *store.Snapshot, c *pane.Frame) string {
	_, _, _, broken := LinkState(c, s)
	switch {
	case broken && s.Engine.Remote.Link == event.LinkStale:
		return "no verdict: no data from the engine"
	case broken:
		return "no verdict: not connected"
	case s.Health.Status == verdict.Unjudged:
		return "no verdict yet: it needs a few requests"
	}
	return ""
}

// cutWords returns the words that fit into w cells, with an ellipsis if they are not all. It keeps no number without its
// unit.
func cutWords(words string, w int, ellipsis rune) string {
	if grid.Width(words) <= w {
		return words
	}
	for cut := words; ; {
		i := strings.LastIndexByte(cut, ' ')
		if i < 0 {
			return words
		}
		if cut = cut[:i]; grid.Width(cut) < w && !endsWithNumber.MatchString(cut) {
			return cut + string(ellipsis)
		}
	}
}

// endsWithNumber matches text that ends with a number whose unit follows.
var endsWithNumber = regexp.MustCompile(`(^| )[\d.]+$`)

// asides are the parts of a verdict that a narrow screen leaves out, such as limits.
var asides = regexp.MustCompile(` \([^)]*\)| (in|of) the last minute`)
