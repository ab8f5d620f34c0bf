package ui

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/view"
)

// Past is what is kept of a session; *store.Past implements it.
type Past interface {
	Range() (from, to event.Time)        // the oldest kept moment and the present
	At(at event.Time) *store.Snapshot    // the newest that is not later; nil: none is kept
	After(at event.Time) *store.Snapshot // the next one; nil: none is kept
}

// How far one key press moves, in the history of a session and in a recording.
const (
	shortStep  = event.Time(time.Second)
	longStep   = event.Time(10 * time.Second)
	halfMinute = event.Time(30 * time.Second)
)

// history is the state of a paused view: the moment on the screen and the histories of the engines.
type history struct {
	app       *app
	histories map[string]Past // opened histories, by the names of the engines
	at        event.Time      // the moment on the screen
	oldest    event.Time      // oldest moment of the history
	now       event.Time
	timeline  chrome.Timeline
}

// historyKeys are the keys that move in the history while the view is paused.
func (h *history) keys() []view.Key {
	by := func(d event.Time) func() { return func() { h.goTo(h.at + d) } }
	return []view.Key{
		{Keys: []string{"space"}, Show: "space", Word: "resume", Help: "return to live", Do: h.toggle},
		{Keys: []string{"left", "shift+left"}, Show: "left", Name: "back 1 s", Help: "go back 1 s: all views show that moment", Do: by(-shortStep)},
		{Keys: []string{"right", "shift+right"}, Show: "left right", Word: "1 s", Name: "forward 1 s", Help: "go forward 1 s", Do: by(shortStep)},
		{Keys: []string{"["}, Show: "[", Name: "back 10 s", Help: "go back 10 s", Do: by(-longStep)},
		{Keys: []string{"]"}, Show: "[ ]", Word: "10 s", Name: "forward 10 s", Help: "go forward 10 s", Do: by(longStep)},
		{Keys: []string{"{"}, Show: "{", Name: "back 30 s", Help: "go back 30 s", Do: by(-halfMinute)},
		{Keys: []string{"}"}, Show: "{ }", Name: "forward 30 s", Help: "go forward 30 s", Do: by(halfMinute)},
		{Keys: []string{"("}, Show: "(", Name: "previous engine", Help: "switch to the previous engine, at the same moment", Do: func() { h.app.switchEngine(false) }, When: h.app.canSwitch},
		{Keys: []string{")"}, Show: "( )", Word: "engine", Help: "switch to the next engine", Do: func() { h.app.switchEngine(true) }, When: h.app.canSwitch},
		{Keys: []string{"home"}, Show: "home", Name: "start", Help: "go to the oldest moment of the history", Do: func() { h.goTo(h.oldest) }},
		{Keys: []string{"end"}, Show: "end", Word: "live", Name: "end", Help: "return to live", Do: h.toggle},
	}
}

// toggle pauses the view at the current moment, or resumes it.
func (h *history) toggle() {
	a := h.app
	a.status.Paused = !a.status.Paused
	*h = history{app: a, at: a.snap.Now}
	a.timeline = nil
	a.updateBindings()
	if a.status.Paused {
		h.update()
		return
	}
	a.updateSessions()
	a.takeSnapshot()
	a.updateEngines()
}

// of returns the history of an engine, or nil.
func (h *history) of(s Session) Past {
	if s.Past == nil {
		return nil
	}
	p := h.histories[s.Name]
	if p == nil {
		if p = s.Past(); p == nil {
			return nil
		}
		if h.histories == nil {
			h.histories = make(map[string]Past)
		}
		h.histories[s.Name] = p
	}
	return p
}

// goTo shows another moment, or the nearest one in the history.
func (h *history) goTo(at event.Time) {
	a := h.app
	p := h.of(a.session)
	if p == nil {
		return
	}
	h.oldest, h.now = p.Range()
	if at < h.oldest {
		a.Notify("the history reaches back " + metric.Duration(int64(h.now-h.oldest)))
	}
	at = min(max(at, h.oldest), h.now)
	s := p.At(at)
	if at > h.at && s != nil && s.Now <= h.at { // nothing is kept in between
		if s = p.After(h.at); s == nil {
			h.update()
			return
		}
	}
	if s == nil {
		a.Notify("this moment is no longer in the history")
		return
	}
	h.at, a.snap, a.dirty = s.Now, s, true
	a.updateOffers()
	a.updateEngines()
	h.update()
}

// update updates the age of the moment on the screen. It needs a frame once per second.
func (h *history) update() {
	a := h.app
	p := h.of(a.session)
	if !a.status.Paused || p == nil {
		a.timeline = nil
		return
	}
	h.oldest, h.now = p.Range()
	bar := chrome.Timeline{
		From: h.oldest / shortStep * shortStep, To: h.now / shortStep * shortStep, At: h.at, Wall: a.snap.Wall,
		Ago: time.Duration(h.now - h.at).Truncate(time.Second), Evicted: h.at < h.oldest,
	}
	a.dirty = a.dirty || a.timeline == nil || bar != h.timeline
	h.timeline = bar
	a.timeline = &h.timeline
}

// snapshotOf returns the snapshot of an engine at the moment on the screen.
func (h *history) snapshotOf(s Session) *store.Snapshot {
	if !h.app.status.Paused {
		return s.Snapshots()
	}
	p := h.of(s)
	if p == nil {
		return s.Snapshots()
	}
	if past := p.At(h.at); past != nil {
		return past
	}
	return chrome.NotKept
}
