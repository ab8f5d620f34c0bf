package tensor

import (
	"testing"
	"unsafe"
)

// TestPanelsAreAligned checks that a register of a panel is one cache line: Go's allocator promises no such alignment.
func TestPanelsAreAligned(t *testing.T) {
	for range 100 {
		if at := uintptr(unsafe.Pointer(panels.New().(*panel))); at%64 != 0 {
			t.Fatalf("a panel at %#x", at)
		}
	}
}
