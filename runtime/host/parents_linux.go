package host

import (
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
		if p, ok := parseProcess(stat); ok {
			all[pid] = p.parent
		}
	}
	return all
}

func (l *linux) forget(gone func(pid int) bool) {
	maps.DeleteFunc(l.procs, func(pid int, _ *processState) bool { return gone(pid) })
	for name := range l.files {
		_, rest, _ := strings.Cut(name, "proc/")
		of, _, _ := strings.Cut(rest, "/")
		if pid, err := strconv.Atoi(of); err == nil && gone(pid) {
			l.forgetFile(name)
		}
	}
}
