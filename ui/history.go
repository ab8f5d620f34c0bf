package ui

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/chrome"
)

// Past is what is kept of a session; *store.Past implements it.
type Past interface {
	Range() (from, to event.Time)        // the oldest kept moment and the present
	At(at event.Time) *store.Snapshot    // the newest that is not later; nil: none is kept
	After(at event.Time) *store.Snapshot // the next one; nil: none is kept
}

// history is the Travel of a live session that is paused: the moment on the screen and what is kept of the engines.
type history struct {
	app      *app
	at       event.Time       // the moment on the screen
	timeline *chrome.Timeline // nil: nothing is kept, or the session is not paused
}

// toggle pauses the view at the current moment, or resumes it.
func (h *history) toggle() {
	if h.app.status.Paused {
		h.Play()
		return
	}
	h.Pause()
}

// Pause implements Travel: it stops the view at the current moment.
func (h *history) Pause() {
	h.begin(true)
	h.update()
}

// Play implements Travel: it returns to live.
func (h *history) Play() {
	h.begin(false)
	a := h.app
	a.updateSessions()
	a.takeSnapshot()
	a.updateEngines()
}

func (h *history) begin(paused bool) {
	a := h.app
	*h = history{app: a, at: a.snap.Now}
	a.status.Paused = paused
	a.updateBindings()
}

// Status implements Travel.
func (h *history) Status() recording.PlayStatus {
	s := recording.PlayStatus{State: recording.Paused, Speed: 1, Now: h.at, Wall: h.app.snap.Wall}
	if p := h.app.session.Past; p != nil {
		s.Begin, s.End = p.Range()
	}
	return s
}

// Step implements Travel: to the next kept moment.
func (h *history) Step(recording.Step) { _ = h.SeekTime(h.at + 1) }

// SetSpeed implements Travel.
func (h *history) SetSpeed(float64) error { return errors.New("set speed: the session is live") }

// SeekRequest implements Travel.
func (h *history) SeekRequest(_ string, id event.RequestID) error {
	now := h.app.session.Snapshots()
	for _, r := range slices.Concat(now.Requests, now.Earlier) {
		if r.ID != id {
			continue
		}
		if first := h.firstOf(r); first != nil {
			return h.SeekTime(first.Now)
		}
	}
	return fmt.Errorf("find request %d: it is not in the history", id)
}

// firstOf returns the first kept snapshot that has a request; nil if none is kept.
func (h *history) firstOf(r *store.Request) *store.Snapshot {
	if p := h.app.session.Past; p != nil {
		return p.After(r.Enqueued)
	}
	return nil
}

// SeekTime implements Travel: it shows the newest kept moment that is not later, or going forward, the next one.
func (h *history) SeekTime(at event.Time) error {
	a := h.app
	p := a.session.Past
	if p == nil {
		return nil
	}
	s := p.At(at)
	if at > h.at && s != nil && s.Now <= h.at { // nothing is kept in between
		if s = p.After(h.at); s == nil {
			h.update()
			return nil
		}
	}
	if s == nil {
		return errors.New("this moment is no longer in the history")
	}
	h.at, a.snap, a.dirty = s.Now, s, true
	a.updateOffers()
	a.updateEngines()
	h.update()
	return nil
}

// update updates the age of the moment on the screen. It needs a frame once per second.
func (h *history) update() {
	a := h.app
	p := a.session.Past
	if !a.status.Paused || p == nil {
		h.timeline = nil
		return
	}
	oldest, now := p.Range()
	bar := &chrome.Timeline{
		From: oldest / shortStep * shortStep, To: now / shortStep * shortStep, At: h.at, Wall: a.snap.Wall,
		Ago: time.Duration(now - h.at).Truncate(time.Second), Evicted: h.at < oldest,
	}
	a.dirty = a.dirty || h.timeline == nil || *bar != *h.timeline
	h.timeline = bar
}

// snapshotOf returns the snapshot of an engine at the moment on the screen.
func (h *history) snapshotOf(s Session) *store.Snapshot {
	if !h.app.status.Paused || s.Past == nil {
		return s.Snapshots()
	}
	if past := s.Past.At(h.at); past != nil {
		return past
	}
	return chrome.NotKept
}
