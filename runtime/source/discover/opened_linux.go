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

// Opened finds the one wanted file that is open in the process that listens at a local address, or in one of its
// children. It returns a path in /proc that opens that very file while the process keeps it open; os.Readlink returns
// the file's name. An error has the reason why the file cannot be determined.
func Opened(at netip.AddrPort, wanted func(path string) bool) (string, error) {
	return opened("", at, wanted)
}

// owner is a process that listens at the address, has wanted files open, or hides its files.
type owner struct {
	pid       int
	listens   bool
	hidden    bool     // its open files are not readable
	files     []string // paths in its fd folder of wanted files
	ancestors []int
}

func opened(root string, at netip.AddrPort, wanted func(path string) bool) (string, error) {
	proc := filepath.Join("/", root, "proc")
	entries, err := os.ReadDir(proc)
	if err != nil {
		return "", errors.New("cannot list processes")
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

// listenersAt returns the names of the sockets that accept connections to an address: those that listen at it, else
// those at all addresses of its family, else those at all addresses of both families.
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

// openIn reads the open files of a process.
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

// oneFile returns the wanted file of the process that listens.
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
				return "", errors.New("the server's processes have several such files open")
			}
		}
	}
	switch {
	case found != "":
		return found, nil
	case len(listening) == 0 && hidden:
		return "", errors.New("cannot find the server's process: not permitted")
	case len(listening) == 0:
		return "", errors.New("cannot find the server's process: it may run in a container, or on another machine behind a tunnel")
	}
	return "", errors.New("the server's process has no such file open")
}
