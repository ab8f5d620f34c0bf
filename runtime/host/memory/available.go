// Package memory reports how much memory a model can use.
package memory

import (
	"github.com/shirou/gopsutil/v4/mem"
)

// Available returns the memory that can be used without swapping, in bytes, within the limit of a container. ok is
// false if the system does not report it.
func Available() (bytes int64, ok bool) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, false
	}
	bytes = int64(v.Available)
	if c, limited := ReadCgroup("/"); limited {
		bytes = min(bytes, c.room("/"))
	}
	return bytes, true
}
