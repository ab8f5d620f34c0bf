package cgroup

import "github.com/shirou/gopsutil/v4/mem"

// Available returns the memory of the machine that can be used without swapping, in bytes, within the limits of this
// process's control groups. ok is false if the system does not report it.
func Available() (bytes int64, ok bool) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return 0, false
	}
	bytes = int64(v.Available)
	if room, limited := groupRoom(); limited {
		bytes = min(bytes, room)
	}
	return bytes, true
}
