package discover

import (
	"bufio"
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// findWaiting returns the listening addresses that only systemd has open. Where its open files cannot be read, these are
// the addresses in its .socket units whose service does not run.
func findWaiting(root string, listeners []host.Listener) (out []waiting) {
	proc := filepath.Join("/", root, "proc")
	entries, err := os.ReadDir(proc)
	if err != nil || len(listeners) == 0 {
		return nil
	}
	listening := map[uint64]bool{}
	for _, l := range listeners {
		listening[l.Inode] = true
	}
	var held, taken []uint64 // by systemd; by others
	var hidden bool          // what systemd holds
	var others []string      // folders of processes
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir := filepath.Join(proc, e.Name())
		if !activates(dir) {
			others = append(others, dir)
			continue
		}
		inodes, ok := socketsOf(dir, listening)
		held, hidden = append(held, inodes...), hidden || !ok
	}
	if len(held) > 0 {
		for _, dir := range others {
			inodes, _ := socketsOf(dir, listening)
			taken = append(taken, inodes...)
		}
	}
	for _, l := range listeners {
		if slices.Contains(held, l.Inode) && !slices.Contains(taken, l.Inode) {
			out = append(out, waiting{l.At, "systemd"})
		}
	}
	if hidden {
		out = append(out, unitsWaiting(root, listeners)...)
	}
	return out
}

// activates reports whether a process starts servers for the sockets that it holds: systemd, for the machine or for a
// user, or its systemd-socket-activate.
func activates(dir string) bool {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	switch string(bytes.TrimSpace(name)) {
	case "systemd":
		return err == nil
	case "systemd-socket-": // cut by the kernel
		args, _ := commandLine(dir)
		return len(args) > 0 && engine.Base(args[0]) == "systemd-socket-activate"
	}
	return false
}

// socketsOf returns which of some sockets a process has open; ok is false if that cannot be read.
func socketsOf(dir string, wanted map[uint64]bool) (inodes []uint64, ok bool) {
	err := host.SocketsOf(dir, func(n uint64) {
		if wanted[n] {
			inodes = append(inodes, n)
		}
	})
	return inodes, err == nil
}

// unitFolders are where units of the machine and of users are, and cgroupFolders where the control groups of running
// services may be.
var (
	unitFolders = []string{
		"etc/systemd/system", "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system",
		"etc/systemd/user", "run/systemd/user", "usr/local/lib/systemd/user", "usr/lib/systemd/user",
	}
	cgroupFolders = []string{"*.slice", "*.slice/*.slice", "user.slice/*/*/*.slice"}
)

// unitsWaiting returns the listening addresses in .socket units whose service does not run.
func unitsWaiting(root string, listeners []host.Listener) (out []waiting) {
	folders := slices.Clone(unitFolders)
	if home, err := os.UserConfigDir(); err == nil && root == "" {
		folders = append(folders, filepath.Join(home, "systemd/user"))
	}
	seen := map[string]bool{} // an earlier folder overrides a later one
	for _, folder := range folders {
		units, _ := filepath.Glob(filepath.Join("/", root, folder, "*.socket"))
		for _, path := range units {
			name := filepath.Base(path)
			if seen[name] {
				continue
			}
			seen[name] = true
			drops, _ := filepath.Glob(path + ".d/*.conf")
			u := unit{service: strings.TrimSuffix(name, ".socket") + ".service"}
			for _, file := range append([]string{path}, drops...) {
				if text, err := os.ReadFile(file); err == nil {
					u.read(text)
				}
			}
			for _, l := range listeners {
				if slices.ContainsFunc(u.listens, func(at netip.AddrPort) bool { return listensAt(at, l.At) }) && !u.runs(root) {
					out = append(out, waiting{l.At, name})
				}
			}
		}
	}
	return out
}

// listensAt reports whether a unit for an address may listen at another: one without an address listens at all of them.
func listensAt(unit, at netip.AddrPort) bool {
	return unit.Port() == at.Port() && (!unit.Addr().IsValid() || unit.Addr().Unmap() == at.Addr().Unmap())
}

// unit is a .socket unit.
type unit struct {
	service string           // that it starts
	each    bool             // it starts another one for each connection
	listens []netip.AddrPort // without an address: at all
}

// read applies the lines of a unit file. It skips what is no TCP address.
func (u *unit) read(text []byte) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Service":
			u.service = value
		case "Accept":
			u.each = slices.Contains([]string{"yes", "true", "on", "1"}, strings.ToLower(value))
		case "ListenStream":
			if value == "" {
				u.listens = nil
			} else if port, err := strconv.ParseUint(value, 10, 16); err == nil {
				u.listens = append(u.listens, netip.AddrPortFrom(netip.Addr{}, uint16(port)))
			} else if at, err := netip.ParseAddrPort(value); err == nil {
				u.listens = append(u.listens, at)
			}
		}
	}
}

// runs reports whether the service runs: then it has a control group.
func (u *unit) runs(root string) bool {
	if u.each {
		return false
	}
	for _, mount := range []string{"sys/fs/cgroup", "sys/fs/cgroup/systemd"} {
		for _, folder := range cgroupFolders {
			if found, _ := filepath.Glob(filepath.Join("/", root, mount, folder, u.service)); len(found) > 0 {
				return true
			}
		}
	}
	return false
}
