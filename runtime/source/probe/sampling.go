package probe

import "slices"

// ToggleCommand is the hidden command that attaches and detaches the probe of picks; its arguments are for Toggle.
const ToggleCommand = "probe-picks"

// Limits of the sampling of picks. Each thread of the process traps at each probed call, so that counting all picks slows
// short passes. While picks are not counted, the probe is detached.
const (
	// callCost is about how long a pass is delayed by one call of the probed function and its record, in ns: three times
	// what was measured with one thread.
	callCost = 5e3
	// switchCost is about how long a process is delayed when the probe is attached and detached, in ns.
	switchCost = 15e6
	// pickBudget is the share of the time of passes that counting picks may take.
	pickBudget = .005
	// minWindow is the shortest time that picks are counted for, in ns.
	minWindow = int64(400e6)
	// maxEvery bounds the passes that are left out for each one that is counted.
	maxEvery = 200
	// pickLease is how long the probe of picks stays attached without another request, in ns: it is detached also when
	// this process is stopped.
	pickLease = int64(1e9)
	// keptWindows bounds how many windows are kept for records that are read late.
	keptWindows = 32
)

// window is the time in which the picks of passes are counted, in ns of CLOCK_MONOTONIC.
type window struct {
	from, to int64 // to: the end of the lease while it is open
}

// sampling decides in which passes picks are counted: in all between the begin and the end of a window.
type sampling struct {
	every   int // picks are counted in 1 of every passes; 0: as the budget permits
	windows []window
	isOpen  bool   // picks are counted now
	counted int    // whole passes in the window
	spent   int64  // ns that they took
	missed  int    // passes since the window ended
	gathers uint64 // calls before the window
	share   int    // 1 pass of share was counted last
}

// open begins a window for which the probe was asked at a time. gathers are the calls so far.
func (s *sampling) open(asked, at int64, gathers uint64) {
	if len(s.windows) == keptWindows {
		s.windows = slices.Delete(s.windows, 0, 1)
	}
	s.windows = append(s.windows, window{from: at, to: asked + pickLease})
	s.isOpen = true
	s.counted, s.spent, s.missed, s.gathers = 0, 0, 0, gathers
}

// close ends the window. gathers are the calls so far.
func (s *sampling) close(at int64, gathers uint64) {
	w := s.current()
	w.to, s.isOpen = min(at, w.to), false
	s.share = s.interval(gathers)
}

// current returns the last window.
func (s *sampling) current() *window { return &s.windows[len(s.windows)-1] }

// lapsed reports whether the probe may have been detached during the window.
func (s *sampling) lapsed(at int64) bool { return s.isOpen && at > s.current().to }

// expires reports whether the lease is to be renewed.
func (s *sampling) expires(at int64) bool { return s.isOpen && s.current().to-at < pickLease/2 }

// renew notes that the probe was asked for again.
func (s *sampling) renew(asked int64) { s.current().to = asked + pickLease }

// interval returns of how many passes one is to be counted.
func (s *sampling) interval(gathers uint64) int {
	if s.every > 0 || s.spent == 0 {
		return max(s.every, 1)
	}
	cost := switchCost + float64(gathers-s.gathers)*callCost
	return int(min(1+cost/(pickBudget*float64(s.spent)), maxEvery))
}

// full reports whether the window may end: it was long enough, had a whole pass, and more would cost too much.
func (s *sampling) full(at int64, gathers uint64) bool {
	return s.isOpen && s.counted > 0 && at-s.current().from >= minWindow && s.interval(gathers) > 1
}

// due reports whether the next window may begin.
func (s *sampling) due() bool { return !s.isOpen && s.missed >= s.counted*(s.share-1) }

// add notes a pass, and reports whether all its picks were counted.
func (s *sampling) add(began, ended int64) bool {
	covers := func(w window) bool { return began >= w.from && ended <= w.to }
	if !slices.ContainsFunc(s.windows, covers) {
		s.missed++
		return false
	}
	if covers(*s.current()) {
		s.counted, s.spent = s.counted+1, s.spent+ended-began
	}
	return true
}
