//go:build !linux

package memory

// groupRoom reports no limit: only Linux has control groups.
func groupRoom() (int64, bool) { return 0, false }
