//go:build !linux

package probe

// Drop does nothing on this system, where nothing needs root.
func Drop() error { return nil }
