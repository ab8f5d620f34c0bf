//go:build !linux

package tensor

import "sync/atomic"

// ownThreads says that goroutines cannot keep a thread each here; what follows is never called.
const ownThreads = false

func settle(int) int               { return 0 }
func await(*atomic.Uint32, uint32) {}
func rouse(*atomic.Uint32)         {}
func yield()                       {}
