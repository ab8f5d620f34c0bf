package host

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func (l *linux) parents() map[int]int {
	proc := filepath.Join(l.root, "proc")
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	all := make(map[int]int)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		if err != nil {
			continue
		}
		// After the name, which may hold anything, come the state and the parent.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 2 {
			continue
		}
		all[pid] = int(number(f[1]))
	}
	return all
}

func (l *linux) forget(gone func(pid int) bool) {
	maps.DeleteFunc(l.procs, func(pid int, _ *processState) bool { return gone(pid) })
	maps.DeleteFunc(l.files, func(name string, file *os.File) bool {
		_, rest, _ := strings.Cut(name, "proc/")
		of, _, _ := strings.Cut(rest, "/")
		pid, err := strconv.Atoi(of)
		if err != nil || !gone(pid) {
			return false
		}
		_ = file.Close() // read only
		return true
	})
}
