// Package memory says how much of it a model may take.
package memory

import (
	"fmt"

	"github.com/shirou/gopsutil/v4/mem"
)

// Available is the memory that can be used without swapping, in bytes, within the limit of a container; false where the system does
// not say.
func Available() (bytes int64, known bool) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, false
	}
	return min(int64(v.Available), cgroupRoom(cgroupRoot, int64(v.Available))), true
}

// Size writes bytes for people.
func Size(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.0f kB", n/1e3)
}
