package cgroup

import "testing"

// TestAvailable expects some available memory on any machine.
func TestAvailable(t *testing.T) {
	if bytes, found := Available(); found && bytes < 1<<20 {
		t.Errorf("%d bytes are available", bytes)
	}
}
