package discover

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Opened finds the one file of those that are wanted which the process that listens at an address of this machine, or one that it has started, has open.
// It returns a path at which that very file can be opened, and which says what it is called (os.Readlink), as long as it is open there. Errors say why it
// cannot be said which file it is.
func Opened(at netip.AddrPort, wanted func(path string) bool) (string, error) {
	return opened("", at, wanted)
}

// owner is a process with what it has to do with an address and with the files that are wanted.
type owner struct {
	pid       int
	listens   bool
	hidden    bool     // its open files may not be looked at
	files     []string // paths below its fd that lead to files that are wanted
	ancestors []int
}

func opened(root string, at netip.AddrPort, wanted func(path string) bool) (string, error) {
	proc := filepath.Join("/", root, "proc")
	entries, err := os.ReadDir(proc)
	if err != nil {
		return "", errors.New("processes could not be listed")
	}
	sockets := listenersAt(proc, at)
	var all []owner
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() && root == "" {
			continue
		}
		if o := openIn(proc, pid, sockets, wanted); o.listens || o.hidden || len(o.files) > 0 {
			all = append(all, o)
		}
	}
	return oneFile(all)
}

// listenersAt are the names of the sockets that take connections to an address: those that listen at it, else those at all addresses of its family,
// else those at all addresses of both.
func listenersAt(proc string, at netip.AddrPort) (names []string) {
	all, _ := readListeners(filepath.Join(proc, "net"))
	for _, takes := range []func(netip.Addr) bool{
		func(a netip.Addr) bool { return a == at.Addr() },
		func(a netip.Addr) bool { return a.IsUnspecified() && a.Is4() == at.Addr().Is4() },
		netip.Addr.IsUnspecified,
	} {
		for _, l := range all {
			if l.at.Port() == at.Port() && takes(l.at.Addr()) {
				names = append(names, "socket:["+strconv.FormatUint(l.inode, 10)+"]")
			}
		}
		if len(names) > 0 {
			break
		}
	}
	return names
}

// openIn looks through the open files of a process.
func openIn(proc string, pid int, sockets []string, wanted func(path string) bool) owner {
	o := owner{pid: pid}
	dir := filepath.Join(proc, strconv.Itoa(pid), "fd")
	f, err := os.Open(dir)
	if err != nil {
		o.hidden = errors.Is(err, os.ErrPermission)
		return o
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxFiles)
	for _, name := range names {
		link, _ := os.Readlink(filepath.Join(dir, name))
		switch {
		case slices.Contains(sockets, link):
			o.listens = true
		case wanted(strings.TrimSuffix(link, " (deleted)")):
			o.files = append(o.files, filepath.Join(dir, name))
		}
	}
	if len(o.files) > 0 {
		o.ancestors = ancestors(proc, pid)
	}
	return o
}

// oneFile is the file that belongs to the process that listens.
func oneFile(all []owner) (string, error) {
	var listening []int
	hidden := false
	for _, o := range all {
		if o.listens {
			listening = append(listening, o.pid)
		}
		hidden = hidden || o.hidden
	}
	found, known := "", os.FileInfo(nil)
	for _, o := range all {
		if !slices.ContainsFunc(listening, func(pid int) bool { return pid == o.pid || slices.Contains(o.ancestors, pid) }) {
			continue
		}
		for _, path := range o.files {
			now, err := os.Stat(path)
			switch {
			case err != nil:
			case known == nil:
				found, known = path, now
			case !os.SameFile(known, now):
				return "", errors.New("the server's processes have several open, and which is its own cannot be said")
			}
		}
	}
	switch {
	case found != "":
		return found, nil
	case len(listening) == 0 && hidden:
		return "", errors.New("which process the server is may not be looked at")
	case len(listening) == 0:
		return "", errors.New("the server's process was not found: it may run in a container, or on another machine behind a tunnel")
	}
	return "", errors.New("the server's process has none open")
}
