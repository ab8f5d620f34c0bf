package tensor

import (
	"testing"
	"unsafe"
)

// TestPanelsAreAligned checks that a register of a panel is one cache line: Go's allocator promises no such alignment.
func TestPanelsAreAligned(t *testing.T) {
	for range 100 {
		p := takePanel()
		defer p.giveBack() // so that all are new, and on the heap
		if at := uintptr(unsafe.Pointer(p)); at%64 != 0 {
			t.Fatalf("a panel at %#x", at)
		}
	}
}
