package ui

import (
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/panes"
)

// Past is what is still known of the last minutes of a session; a *store.Trip is one. Its methods must not take longer than a frame or two.
type Past interface {
	Reach() (from, to event.Time)     // the oldest moment that can be looked at, and the present one
	At(at event.Time) *store.Snapshot // as it was then; nil if that is no longer known
}

// How far one press of a key goes, in the past of a session and in a recording.
const (
	nearBy = event.Time(time.Second)
	farBy  = event.Time(10 * time.Second)
)

// travel is where in the past the view is while it is paused.
type travel struct {
	past map[string]Past  // of the engines that have been looked at, by their names
	at   event.Time       // the moment on show
	seen map[string]sight // what has been looked at, by the names of the engines
	from event.Time       // how far back can be looked
	now  event.Time
	bar  panes.Timeline
}

// travelling are the keys while the view is paused.
var travelling = []binding{
	{everywhere, actPause, []string{"space"}, "space", "resume", "back to live"},
	{everywhere, actBackward, []string{"left", "shift+left"}, "left", "", "1 s back: everything on all views is as it was then"},
	{everywhere, actForward, []string{"right", "shift+right"}, "left right", "1 s", "1 s on"},
	{everywhere, actFarBack, []string{"["}, "[", "", "10 s back"},
	{everywhere, actFarOn, []string{"]"}, "[ ]", "10 s", "10 s on"},
	{everywhere, actPreviousEngine, []string{"("}, "(", "", "the engine before, at the same moment"},
	{everywhere, actNextEngine, []string{")"}, "( )", "engine", "the next engine"},
	{everywhere, actToBegin, []string{"home"}, "home", "", "to the oldest moment that is still known"},
	{everywhere, actToEnd, []string{"end"}, "end", "live", "back to live"},
}

// travelBindings are the keys while the view is paused.
var travelBindings = overriding(travelling)

// pause freezes the view at this moment, or lets it go on.
func (a *app) pause() {
	a.panes.Paused = !a.panes.Paused
	if a.panes.Paused {
		a.travel = travel{at: a.snap.Now}
		a.rekey()
		a.lookBack()
		return
	}
	a.travel, a.panes.Timeline = travel{}, nil
	a.rekey()
	a.meet()
	a.look()
	a.survey()
}

// rekey chooses the keys that there are: those of a replay, of a view that is paused and has a past, or of one that is live.
func (a *app) rekey() {
	switch {
	case a.cfg.Replay != nil:
		a.bindings = replayBindings()
	case a.panes.Paused && a.past(a.session) != nil:
		a.bindings = travelBindings
	default:
		a.bindings = bindings
	}
}

// past is what is known of the past of an engine, nil if nothing is.
func (a *app) past(s Session) Past {
	if s.Past == nil {
		return nil
	}
	t := &a.travel
	p := t.past[s.Name]
	if p == nil {
		if p = s.Past(); p == nil {
			return nil
		}
		if t.past == nil {
			t.past = make(map[string]Past)
		}
		t.past[s.Name] = p
	}
	return p
}

// goTo shows another moment, as near as what is known reaches.
func (a *app) goTo(at event.Time) {
	p := a.past(a.session)
	if p == nil {
		return
	}
	t := &a.travel
	t.from, t.now = p.Reach()
	if at < t.from {
		a.say("the history reaches back " + metric.Duration(int64(t.now-t.from)))
	}
	at = min(max(at, t.from), t.now)
	s := p.At(at)
	if s == nil {
		a.say("this moment is no longer known")
		return
	}
	t.at, a.snap, a.dirty = at, s, true
	a.survey()
}

// roam does what a key of the past says, and reports whether it is one.
func (a *app) roam(act action) bool {
	if a.cfg.Replay != nil || !a.panes.Paused {
		return false
	}
	t := &a.travel
	switch act {
	case actBackward:
		a.goTo(t.at - nearBy)
	case actForward:
		a.goTo(t.at + nearBy)
	case actFarBack:
		a.goTo(t.at - farBy)
	case actFarOn:
		a.goTo(t.at + farBy)
	case actToBegin:
		a.goTo(t.from)
	case actToEnd:
		a.pause()
	default:
		return false
	}
	a.lookBack()
	return true
}

// clickTrack goes to the moment at a place of the line of time, and reports whether there is one.
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
	case a.panes.Paused:
		a.goTo(between(a.travel.bar.From, a.travel.bar.To))
		a.lookBack()
	}
	return true
}

// lookBack takes how far away the moment on show is by now. It is worth a frame when a second has passed.
func (a *app) lookBack() {
	p := a.past(a.session)
	if !a.panes.Paused || p == nil {
		a.panes.Timeline = nil
		return
	}
	t := &a.travel
	t.from, t.now = p.Reach()
	bar := panes.Timeline{
		From: t.from / nearBy * nearBy, To: t.now / nearBy * nearBy, At: t.at, Wall: a.snap.Wall,
		Ago: time.Duration(t.now - t.at).Truncate(time.Second), Gone: t.at < t.from,
	}
	a.dirty = a.dirty || a.panes.Timeline == nil || bar != t.bar
	t.bar = bar
	a.panes.Timeline = &t.bar
}

// sight is an engine at a moment.
type sight struct {
	at event.Time
	*store.Snapshot
}

// seen is the snapshot of an engine at the moment on show.
func (a *app) seen(s Session) *store.Snapshot {
	if !a.panes.Paused {
		return s.Snapshots()
	}
	t, p := &a.travel, a.past(s)
	if p == nil {
		return s.Snapshots()
	}
	if was, ok := t.seen[s.Name]; ok && was.at == t.at {
		return was.Snapshot
	}
	was := p.At(t.at)
	if was == nil {
		was = panes.NotKept
	}
	if t.seen == nil {
		t.seen = make(map[string]sight)
	}
	t.seen[s.Name] = sight{t.at, was}
	return was
}

// looksAtOnce is of how many engines the past is looked at in one frame: a look takes about a millisecond.
const looksAtOnce = 40

// catchUp looks at the past of engines of the list of which it has not been looked at.
func (a *app) catchUp() {
	if a.panes.Behind > 0 {
		a.survey()
	}
}

// behind reports whether an engine is not shown as it was at the moment on show, which takes a look that is left for later.
func (a *app) behind(s Session) bool {
	if !a.panes.Paused || a.past(s) == nil {
		return false
	}
	was, ok := a.travel.seen[s.Name]
	return !ok || was.at != a.travel.at
}

// overriding are the keys of a table, and of the others those that these leave. What is of one view alone stays.
func overriding(own []binding) []binding {
	out := slices.Clone(own)
	for _, b := range bindings {
		if b.in == everywhere || b.in == panesOnly || b.in == scrolling {
			b.keys = slices.DeleteFunc(slices.Clone(b.keys), func(key string) bool { return lookup(own, key, viewOverview) != actNone })
		}
		if len(b.keys) > 0 {
			out = append(out, b)
		}
	}
	return out
}
