package scrape

import "context"

// The number of servers that are asked at the same time. Those that have not answered last have a lane of their own, so that servers that
// hang hold up nobody but each other.
const (
	wellAtOnce = 256
	sickAtOnce = 64
)

// Lanes bound how many servers are asked at the same time.
type Lanes struct{ well, sick chan struct{} }

// NewLanes are lanes for servers that share them.
func NewLanes() *Lanes {
	return &Lanes{make(chan struct{}, wellAtOnce), make(chan struct{}, sickAtOnce)}
}

// enter waits for a place; false if ctx ends before there is one.
func (l *Lanes) enter(ctx context.Context, sick bool) bool {
	select {
	case l.lane(sick) <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *Lanes) leave(sick bool) { <-l.lane(sick) }

func (l *Lanes) lane(sick bool) chan struct{} {
	if sick {
		return l.sick
	}
	return l.well
}
