package discover

import (
	"bytes"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

const (
	// maxArgs limits the length of a command line, in bytes.
	maxArgs = 64 << 10
	// generations limits how many ancestors of a process are followed.
	generations = 6
)

// look reads /proc in root ("": "/").
func look(root string) (s sight) {
	proc := filepath.Join("/", root, "proc")
	entries, err := os.ReadDir(proc)
	if err != nil {
		s.problems = append(s.problems, "cannot list processes: "+err.Error())
	}
	listeners, ok := host.Listeners(filepath.Join(proc, "net"))
	s.listened = ok
	home, _ := os.Readlink(filepath.Join(proc, "self/ns/net"))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() && root == "" {
			continue
		}
		dir := filepath.Join(proc, e.Name())
		args, err := commandLine(dir)
		if errors.Is(err, fs.ErrPermission) {
			s.unread++
		}
		p, rest := engine.Recognise(args)
		if p == nil && len(args) > 0 && !isSelf(dir, root) && usesLlama(dir, args[0]) {
			p, rest = &engine.Program{Kind: engine.Llama, Name: engine.Base(args[0]), Closed: true}, args[1:]
		}
		if p == nil {
			continue
		}
		one := process{pid: pid, program: p, args: rest, ancestors: ancestors(proc, pid)}
		one.listens(dir, home, listeners)
		s.processes = append(s.processes, one)
	}
	s.waiting = findWaiting(root, listeners)
	for _, l := range listeners {
		if !slices.ContainsFunc(s.waiting, func(w waiting) bool { return w.at == l.At }) {
			s.listening = append(s.listening, l.At)
		}
	}
	return s
}

// Listens reports whether a program with this name listens at a port of this machine, and not one that forwards to another
// machine or into a container. It is false if that is not certain.
func Listens(name string, port uint16) bool { return listens("", name, port) }

func listens(root, name string, port uint16) bool {
	proc := filepath.Join("/", root, "proc")
	entries, _ := os.ReadDir(proc)
	listeners, _ := host.Listeners(filepath.Join(proc, "net"))
	home, _ := os.Readlink(filepath.Join(proc, "self/ns/net"))
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		dir := filepath.Join(proc, e.Name())
		if args, err := commandLine(dir); err != nil || len(args) == 0 || engine.Base(args[0]) != name {
			return false
		}
		var p process
		p.listens(dir, home, listeners)
		return slices.ContainsFunc(p.ports, func(at netip.AddrPort) bool { return at.Port() == port })
	})
}

// usesLlama reports whether a process has llama.cpp's library mapped, or is one of its programs.
func usesLlama(dir, program string) bool {
	if strings.HasPrefix(engine.Base(program), "llama-") {
		return true
	}
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	return err == nil && bytes.Contains(maps, []byte("/libllama"))
}

// isSelf reports whether a process runs this program: its children that run models.
func isSelf(dir, root string) bool {
	own, err := os.Stat(filepath.Join("/", root, "proc/self/exe"))
	if err != nil {
		return false
	}
	its, err := os.Stat(filepath.Join(dir, "exe"))
	return err == nil && os.SameFile(own, its)
}

// commandLine returns the arguments of a process, none for a kernel thread.
func commandLine(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimRight(string(text[:min(len(text), maxArgs)]), "\x00"), "\x00")
	if words[0] == "" {
		return nil, nil
	}
	return words, nil
}

// ancestors returns the ancestors of a process, nearest first.
func ancestors(proc string, pid int) (out []int) {
	for range generations {
		stat, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
		if err != nil {
			break
		}
		// The name may hold anything; after it come the state and the parent.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) < 2 {
			break
		}
		if pid, err = strconv.Atoi(string(f[1])); err != nil || pid <= 1 {
			break
		}
		out = append(out, pid)
	}
	return out
}

// listens finds the ports of the process: its open files name sockets, and listeners has their addresses.
func (p *process) listens(dir, home string, listeners []host.Listener) {
	if its, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil && home != "" && its != home {
		p.otherNetwork = true
		return
	}
	err := host.SocketsOf(dir, func(n uint64) {
		if i := slices.IndexFunc(listeners, func(l host.Listener) bool { return l.Inode == n }); i >= 0 {
			p.ports = append(p.ports, listeners[i].At)
		}
	})
	if p.hidden = err != nil; p.hidden {
		p.guess(dir, listeners)
	}
	slices.SortFunc(p.ports, netip.AddrPort.Compare)
	p.ports = slices.Compact(p.ports)
}

// guess finds the ports of another user's process: those of its user with the number that it wants. A container's process
// has a number of its own there, and may listen in another network.
func (p *process) guess(dir string, listeners []host.Listener) {
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	_, numbers, _ := bytes.Cut(status, []byte("\nNSpid:"))
	numbers, _, _ = bytes.Cut(numbers, []byte("\n"))
	info, err := os.Stat(dir)
	if err != nil || p.program == nil || len(bytes.Fields(numbers)) != 1 {
		return
	}
	user := uint64(info.Sys().(*syscall.Stat_t).Uid)
	for _, l := range listeners {
		if l.User == user && l.At.Port() == p.wantedPort() {
			p.likely = append(p.likely, l.At)
		}
	}
}
