package engine

import "context"

// The maximum numbers of servers polled at the same time. Servers whose last poll failed have a limit of their own, so
// that hanging servers delay only each other.
const (
	maxHealthy = 256
	maxFailing = 64
)

// PollLimits limits how many servers are polled at the same time.
type PollLimits struct{ healthy, failing chan struct{} }

// NewPollLimits returns limits to be shared by the Pollers of all servers.
func NewPollLimits() *PollLimits {
	return &PollLimits{make(chan struct{}, maxHealthy), make(chan struct{}, maxFailing)}
}

// acquire waits for a free slot; false if ctx ends first.
func (l *PollLimits) acquire(ctx context.Context, failing bool) bool {
	select {
	case l.slots(failing) <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *PollLimits) release(failing bool) { <-l.slots(failing) }

func (l *PollLimits) slots(failing bool) chan struct{} {
	if failing {
		return l.failing
	}
	return l.healthy
}
