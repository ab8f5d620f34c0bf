package ui

import (
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/view"
)

// Past is the history of a session; *store.HistoryReader implements it. Its methods must take no longer than a frame or two.
type Past interface {
	Range() (from, to event.Time)     // Reach returns the oldest moment of the history and the present
	At(at event.Time) *store.Snapshot // At returns the snapshot of a moment; nil if the history no longer has it
}

// How far one key press moves, in the history of a session and in a recording.
const (
	shortStep = event.Time(time.Second)
	longStep  = event.Time(10 * time.Second)
)

// pastView is the state of a paused view: the moment on the screen and the histories of the engines.
type pastView struct {
	histories map[string]Past         // opened histories, by the names of the engines
	at        event.Time              // the moment on the screen
	loaded    map[string]pastSnapshot // loaded snapshots, by the names of the engines
	oldest    event.Time              // oldest moment of the history
	now       event.Time
	timeline  chrome.Timeline
}

// historyKeys are the keys that move in the history while the view is paused.
func (a *app) historyKeys() []view.Key {
	by := func(d event.Time) func() { return func() { a.goTo(a.history.at + d) } }
	return []view.Key{
		{Keys: []string{"space"}, Show: "space", Word: "resume", Help: "return to live", Do: a.pause},
		{Keys: []string{"left", "shift+left"}, Show: "left", Name: "back 1 s", Help: "go back 1 s: all views show that moment", Do: by(-shortStep)},
		{Keys: []string{"right", "shift+right"}, Show: "left right", Word: "1 s", Name: "forward 1 s", Help: "go forward 1 s", Do: by(shortStep)},
		{Keys: []string{"["}, Show: "[", Name: "back 10 s", Help: "go back 10 s", Do: by(-longStep)},
		{Keys: []string{"]"}, Show: "[ ]", Word: "10 s", Name: "forward 10 s", Help: "go forward 10 s", Do: by(longStep)},
		{Keys: []string{"("}, Show: "(", Name: "previous engine", Help: "switch to the previous engine, at the same moment", Do: func() { a.switchEngine(false) }, When: a.canSwitch},
		{Keys: []string{")"}, Show: "( )", Word: "engine", Help: "switch to the next engine", Do: func() { a.switchEngine(true) }, When: a.canSwitch},
		{Keys: []string{"home"}, Show: "home", Name: "start", Help: "go to the oldest moment of the history", Do: func() { a.goTo(a.history.oldest) }},
		{Keys: []string{"end"}, Show: "end", Word: "live", Name: "end", Help: "return to live", Do: a.pause},
	}
}

// pause pauses the view at the current moment, or resumes it.
func (a *app) pause() {
	a.status.Paused = !a.status.Paused
	if a.status.Paused {
		a.history = pastView{at: a.snap.Now}
		a.updateBindings()
		a.updateTimeline()
		return
	}
	a.history, a.timeline = pastView{}, nil
	a.updateBindings()
	a.updateSessions()
	a.takeSnapshot()
	a.updateEngines()
}

// past returns the history of an engine, or nil.
func (a *app) past(s Session) Past {
	if s.Past == nil {
		return nil
	}
	t := &a.history
	p := t.histories[s.Name]
	if p == nil {
		if p = s.Past(); p == nil {
			return nil
		}
		if t.histories == nil {
			t.histories = make(map[string]Past)
		}
		t.histories[s.Name] = p
	}
	return p
}

// goTo shows another moment, or the nearest one in the history.
func (a *app) goTo(at event.Time) {
	p := a.past(a.session)
	if p == nil {
		return
	}
	t := &a.history
	t.oldest, t.now = p.Range()
	if at < t.oldest {
		a.Notify("the history reaches back " + metric.Duration(int64(t.now-t.oldest)))
	}
	at = min(max(at, t.oldest), t.now)
	s := p.At(at)
	if s == nil {
		a.Notify("this moment is no longer in the history")
		return
	}
	t.at, a.snap, a.dirty = at, s, true
	a.updateOffers()
	a.updateEngines()
	a.updateTimeline()
}

// clickTrack goes to the moment under the mouse on the timeline, and reports whether the mouse is on it.
func (a *app) clickTrack(x, y int) bool {
	if !a.track.Has(x, y) {
		return false
	}
	share := (float64(x-a.track.X) + 0.5) / float64(a.track.W)
	between := func(from, to event.Time) event.Time { return from + event.Time(share*float64(to-from)) }
	switch {
	case a.cfg.Replay != nil:
		p := a.cfg.Replay.Status()
		a.seek(p, between(p.Begin, p.End))
	case a.status.Paused:
		a.goTo(between(a.history.timeline.From, a.history.timeline.To))
	}
	return true
}

// updateTimeline updates the age of the moment on the screen. It needs a frame once per second.
func (a *app) updateTimeline() {
	p := a.past(a.session)
	if !a.status.Paused || p == nil {
		a.timeline = nil
		return
	}
	t := &a.history
	t.oldest, t.now = p.Range()
	bar := chrome.Timeline{
		From: t.oldest / shortStep * shortStep, To: t.now / shortStep * shortStep, At: t.at, Wall: a.snap.Wall,
		Ago: time.Duration(t.now - t.at).Truncate(time.Second), Evicted: t.at < t.oldest,
	}
	a.dirty = a.dirty || a.timeline == nil || bar != t.timeline
	t.timeline = bar
	a.timeline = &t.timeline
}

// pastSnapshot is the snapshot of an engine at a moment.
type pastSnapshot struct {
	at event.Time
	*store.Snapshot
}

// snapshotOf returns the snapshot of an engine at the moment on the screen.
func (a *app) snapshotOf(s Session) *store.Snapshot {
	if !a.status.Paused {
		return s.Snapshots()
	}
	t, p := &a.history, a.past(s)
	if p == nil {
		return s.Snapshots()
	}
	if loaded, ok := t.loaded[s.Name]; ok && loaded.at == t.at {
		return loaded.Snapshot
	}
	past := p.At(t.at)
	if past == nil {
		past = chrome.NotKept
	}
	if t.loaded == nil {
		t.loaded = make(map[string]pastSnapshot)
	}
	t.loaded[s.Name] = pastSnapshot{t.at, past}
	return past
}

// maxPastLoads bounds the engines whose past snapshots are loaded per frame: one takes about a millisecond.
const maxPastLoads = 40

// catchUp loads past snapshots of engines in the list that still lack one.
func (a *app) catchUp() {
	if a.status.PendingEngines > 0 {
		a.updateEngines()
	}
}

// behind reports whether the past snapshot of an engine at the moment on the screen is not loaded yet.
func (a *app) behind(s Session) bool {
	if !a.status.Paused || a.past(s) == nil {
		return false
	}
	loaded, ok := a.history.loaded[s.Name]
	return !ok || loaded.at != a.history.at
}
