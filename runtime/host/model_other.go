//go:build !linux

package host

import (
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
)

// ReadModel fails: the system does not show whether a file is the one that a process has read.
func ReadModel([]int, string) (event.Model, error) {
	return event.Model{}, errors.New("read model: only on Linux")
}
