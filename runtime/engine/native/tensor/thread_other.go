//go:build !linux

package tensor

import "sync/atomic"

// ownThreads is false: goroutines cannot have their own threads here. The functions below are never called.
const ownThreads = false

func claimThread(int) int            { return 0 }
func sleepOn(*atomic.Uint32, uint32) {}
func wakeAll(*atomic.Uint32)         {}
func yield()                         {}
