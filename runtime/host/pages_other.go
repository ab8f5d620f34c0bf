//go:build !linux

package host

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
)

// Inspects reports whether the system has the readings of an Inspector.
const Inspects = false

// proportional is not reported on other systems.
func proportional(int) event.Reading { return event.Absent(event.NotReported) }

// fileOf returns the name.
func fileOf(_ int, name string) string { return name }

// cachedFile is not reported on other systems.
func cachedFile(string) (size, cached event.Reading) {
	return event.Absent(event.NotReported), event.Absent(event.NotReported)
}

// CachedExperts fails on other systems.
func CachedExperts(string) (layers, experts int, shares []uint8, err error) {
	return 0, 0, nil, errors.New("read page cache: only on Linux")
}
