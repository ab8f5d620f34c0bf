package chrome

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// evidenceViews are the names of the views that show the numbers behind a verdict, by its topic, the best first. The
// insights of the overview have the evidence of all.
var evidenceViews = map[string][]string{
	"TTFT": {"Requests", "Latency"}, "queue": {"Requests"}, "token gaps": {"Latency"}, "targets": {"Latency"}, "lost time": {"System", "Latency"}, "decode": {"Latency"},
	"memory": {"System"}, "KV cache": {"Requests"}, "prompt cache": {"Latency"}, "preemptions": {"Requests"}, "engine": {"Engines"}, "speculation": {"Latency"}, "bound": {"System"},
}

// keyToEvidence returns the key of the view with the evidence for a verdict; "" if it is on the screen.
func keyToEvidence(v *verdict.Verdict, s *store.Snapshot, offers func(view string) (key string, ok bool)) string {
	views := evidenceViews[v.Topic]
	switch v.Cause {
	case verdict.PromptOfOther, verdict.Pacing, verdict.Queue, verdict.OwnPrompt, verdict.ModelLoad: // requests show it, the machine does not
		views = evidenceViews["queue"]
	}
	for _, name := range append(slices.Clip(views), "Overview") {
		if name == "System" && !s.Host.Sampled {
			continue
		}
		if key, ok := offers(name); ok {
			return key
		}
	}
	return ""
}

// DrawVerdict draws one line that says whether the engine serves as it should: since when not, why, and what to try; or
// why there is no verdict, as while the connection is broken. offers returns the key of a view by its name, "" if it is on
// the screen; false if the view is not offered.
func DrawVerdict(a grid.Area, s *store.Snapshot, f *pane.Frame, offers func(view string) (key string, ok bool)) {
	h, gl := s.Health, f.Skin.Glyphs
	l := a.Line(1, 0)
	if why := unjudged(s, f); why != "" {
		l.Put(pane.Dim, why)
		return
	}
	name, st, mark := verdict.Statuses[h.Status].Name, pane.Dim.With(grid.Bold), gl.Info
	v := h.Verdict
	if v == nil {
		v = &verdict.Verdict{Topic: "TTFT"}
	}
	try := v.Try
	switch h.Status {
	case verdict.Healthy:
		st, mark, try = pane.Good.With(grid.Bold), gl.Good, ""
	case verdict.NoTarget:
		try = "--slo ttft=500ms"
	default:
		st, mark = pane.Watch.With(grid.Bold), gl.Watch
		if v.Severity == verdict.Bad && h.Status == verdict.Degraded {
			st, mark = pane.Bad.With(grid.Bold), gl.Bad
		}
		if to := keyToEvidence(v, s, offers); to != "" {
			a = a.Sub(0, 0, a.Right(a.W-1, 0, pane.Dim, "see "+to)-1, 1)
			l = a.Line(1, 0)
		}
	}
	l.Rune(st, mark).Gap(1).Put(st, name)
	switch h.Status {
	case verdict.Degraded:
		l.Put(pane.Plain, " since "+s.Wall.Add(-time.Duration(s.Now-v.Since)).Format("15:04:05")+": ")
	default:
		l.Gap(2)
	}
	drawReason(a, &l, f, v.Text, try, h.Status >= verdict.Watched)
}

// drawReason writes the text of a verdict and what to try, as far as they fit; loud if the user should read it.
func drawReason(a grid.Area, l *grid.Line, f *pane.Frame, text, try string, loud bool) {
	elided := func(st grid.Style, words string, w int) { l.X += a.Elide(l.X, 0, w, st, words, f.Skin.Glyphs.Ellipsis) }
	words, outdated := strings.CutSuffix(sanitize.Line(text), verdict.Outdated)
	past, st := "", pane.Dim
	if outdated {
		past = verdict.Outdated
	}
	if loud {
		st = pane.Data
	}
	if try != "" {
		try = " " + string(f.Skin.Glyphs.Arrow) + " " + sanitize.Line(try)
	}
	if grid.Width(words)+grid.Width(past)+grid.Width(try) > l.Room() { // half a cause and half a remedy help nobody
		try = ""
	}
	if grid.Width(words)+grid.Width(past) > l.Room() {
		words = asides.ReplaceAllString(words, "")
	}
	elided(st, cutWords(words, l.Room()-grid.Width(past), f.Skin.Glyphs.Ellipsis), l.Room())
	elided(pane.Dim, past, l.Room())
	l.Put(pane.Plain, try)
}

// unjudged returns why there is no verdict on an engine, "" if there is one. The last verdict before the connection broke
// says nothing about the engine now.
func unjudged(s *store.Snapshot, f *pane.Frame) string {
	_, _, _, broken := LinkState(s, f)
	switch {
	case broken && s.Engine.Remote.Link == event.LinkStale:
		return "no verdict: no data from the engine"
	case broken:
		return "no verdict: not connected"
	case s.Health.Status != verdict.Unjudged:
		return ""
	case s.CallsOnly():
		return "no verdict: requests are not seen; calls of CUDA are counted"
	case s.ReportsTooLittle():
		return "no verdict: this server reports too little about its requests"
	case s.Totals().Finished.V >= float64(verdict.ServedRequests):
		return "no verdict: too little was measured in the last minute"
	}
	return "no verdict yet: it needs a few requests"
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
