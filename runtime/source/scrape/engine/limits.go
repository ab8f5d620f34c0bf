package engine

import "golang.org/x/sync/semaphore"

// The maximum numbers of servers polled at the same time. Servers whose last poll failed have a limit of their own, so
// that hanging servers delay only each other.
const (
	maxHealthy = 256
	maxFailing = 64
)

// PollLimits limits how many servers are polled at the same time.
type PollLimits struct{ healthy, failing *semaphore.Weighted }

// NewPollLimits returns limits to be shared by the Pollers of all servers.
func NewPollLimits() *PollLimits {
	return &PollLimits{semaphore.NewWeighted(maxHealthy), semaphore.NewWeighted(maxFailing)}
}

func (l *PollLimits) of(failing bool) *semaphore.Weighted {
	if failing {
		return l.failing
	}
	return l.healthy
}
