//go:build !linux

package watch

// DropRoot does nothing on this system, where nothing needs root.
func DropRoot() error { return nil }
