package discover

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tree is a /proc made for a test.
type tree struct {
	tb        testing.TB
	root      string
	listeners []netip.AddrPort
}

func newTree(tb testing.TB) *tree {
	t := &tree{tb: tb, root: tb.TempDir()}
	t.link("self/ns/net", "net:[1]")
	t.listen()
	return t
}

// process adds a process whose arguments are separated by |; it listens at the given addresses.
func (t *tree) process(pid, parent int, words string, at ...netip.AddrPort) {
	dir := strconv.Itoa(pid)
	t.write(dir+"/cmdline", strings.ReplaceAll(words, "|", "\x00")+"\x00")
	t.write(dir+"/environ", "HOME=/root\x00")
	t.write(dir+"/stat", fmt.Sprintf("%d (a name) with) brackets) S %d 1 1 0 -1", pid, parent))
	t.link(dir+"/ns/net", "net:[1]")
	t.link(dir+"/fd/0", "/dev/null")
	for i, a := range at {
		t.listeners = append(t.listeners, a)
		t.link(fmt.Sprintf("%s/fd/%d", dir, i+3), fmt.Sprintf("socket:[%d]", 1000+len(t.listeners)))
	}
	t.listen()
}

// listen writes the table of listening sockets.
func (t *tree) listen(more ...netip.AddrPort) {
	t.listeners = append(t.listeners, more...)
	var table strings.Builder
	fmt.Fprintln(&table, "  sl  local_address rem_address   st")
	for i, a := range t.listeners {
		ip := a.Addr().As4()
		fmt.Fprintf(&table, "%4d: %08X:%04X 00000000:0000 0A 0:0 00:0 0 %d 0 %d 1\n", i, binary.LittleEndian.Uint32(ip[:]), a.Port(), os.Getuid(), 1001+i)
	}
	t.write("net/tcp", table.String())
}

func (t *tree) write(name, text string) {
	path := filepath.Join(t.root, "proc", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.tb.Fatal(err)
	}
}

func (t *tree) link(name, to string) {
	path := filepath.Join(t.root, "proc", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.tb.Fatal(err)
	}
	_ = os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		t.tb.Fatal(err)
	}
}

func (t *tree) remove(name string) {
	if err := os.RemoveAll(filepath.Join(t.root, "proc", name)); err != nil {
		t.tb.Fatal(err)
	}
}
