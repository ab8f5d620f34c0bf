//go:build !linux

package cgroup

// groupRoom reports no limit: only Linux has control groups.
func groupRoom() (int64, bool) { return 0, false }
