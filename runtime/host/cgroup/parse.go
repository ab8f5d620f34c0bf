// Package cgroup reads the limits that control groups set for a process, of version 1, version 2 or both at once. A limit
// of a group holds for all groups below it, so each reading considers the group of the process and all groups above it
// that can be seen from here.
package cgroup

import (
	"bytes"
	"strconv"
)

// Keyed returns the number in the line "KEY NUMBER" or "KEY: NUMBER" of a file; false without such a line.
func Keyed(file []byte, key string) (uint64, bool) {
	for line := range bytes.Lines(file) {
		rest, ok := bytes.CutPrefix(line, []byte(key))
		if !ok || len(rest) == 0 || rest[0] != ':' && rest[0] != ' ' {
			continue
		}
		f := bytes.Fields(bytes.TrimPrefix(rest, []byte(":")))
		if len(f) == 0 {
			return 0, false
		}
		return parseCount(f[0])
	}
	return 0, false
}

// ParsePressure returns the total of the line "some" of a PSI file, in µs; false without one.
func ParsePressure(psi []byte) (us uint64, ok bool) {
	line, _, _ := bytes.Cut(psi, []byte("\n"))
	_, total, found := bytes.Cut(line, []byte(" total="))
	if !found || !bytes.HasPrefix(line, []byte("some ")) {
		return 0, false
	}
	return parseCount(total)
}

// parseCount parses an unsigned number; false for anything else.
func parseCount(b []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}
