package runtime

import "context"

// keepOps keeps what the engine has timed of its operations for who asks, which is not its own thread.
func (d *driver) keepOps() {
	if !d.hooked.Ops {
		return
	}
	if p, ok := d.engine.(Profiled); ok {
		d.ops.Store(p.Ops())
	}
}

// Ops is what the engine has timed of its operations, no older than the end of the last request; nil if nothing. The error is always
// nil; it is for those that stand for a Scheduler.
func (s *Scheduler) Ops(context.Context) (*Ops, error) { return s.ops.Load(), nil }
