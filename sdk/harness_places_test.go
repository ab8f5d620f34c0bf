package sdk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// reclaimed: an engine replaces the socket of an exited engine, but not that of a live one.
func (s Suite) reclaimed(t *testing.T) {
	address := "ADDRESS=unix:" + Socket(t)
	p := Start(t, s.Binary, address)
	if why := Refused(t, s.Binary, address); !strings.Contains(why, strconv.Itoa(p.PID())) || !strings.Contains(why, "live engine") {
		t.Errorf("a socket that process %d holds is rejected with: %s", p.PID(), why)
	}
	p.Kill()
	next := Start(t, s.Binary, address)
	if Connect(t, next.Address, check).Read("hello").Keys["pid"] != float64(next.PID()) {
		t.Error("another engine answers")
	}
	next.Go()
	next.Done()
	next.End()
	if _, err := os.Lstat(path(next.Address)); !os.IsNotExist(err) {
		t.Errorf("the socket of an engine that has ended: %v", err)
	}
	if err := os.WriteFile(path(next.Address), []byte("a letter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if why := Refused(t, s.Binary, address); !strings.Contains(why, "not a socket") {
		t.Errorf("a file in place of the socket is rejected with: %s", why)
	}
}

// place checks the default folder.
func (s Suite) place(t *testing.T) {
	folder := filepath.Dir(Socket(t))
	p := Start(t, s.Binary, "XDG_RUNTIME_DIR="+folder)
	if want := fmt.Sprintf("unix:%s/llmtop/", folder); !strings.HasPrefix(p.Address, want) || !strings.HasSuffix(p.Address, fmt.Sprintf("-%d.sock", p.PID())) {
		t.Errorf("the address is %s", p.Address)
	}
	for name, want := range map[string]os.FileMode{path(p.Address): 0o600, filepath.Dir(path(p.Address)): 0o700} {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, not %v", name, got, want)
		}
	}
	p.Go()
	p.Done()
	p.End()
	s.untrusted(t, folder, filepath.Join(folder, "llmtop"))
}

// untrusted replaces the default folder with things that the engine must refuse.
func (s Suite) untrusted(t *testing.T, folder, place string) {
	other := filepath.Join(folder, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func() error{
		"chmod 700":       func() error { return errors.Join(os.Mkdir(place, 0o700), os.Chmod(place, 0o777)) },
		"is not a folder": func() error { return os.Symlink(other, place) },
		"not a folder: ":  func() error { return os.WriteFile(place, nil, 0o600) },
	}
	if os.Geteuid() == 0 {
		cases["belongs to user 12345"] = func() error { return errors.Join(os.Mkdir(place, 0o700), os.Lchown(place, 12345, -1)) }
	} else {
		t.Log("only root can give a folder to another user: skipping that case")
	}
	for words, make := range cases {
		if err := errors.Join(os.RemoveAll(place), make()); err != nil {
			t.Fatal(err)
		}
		if why := Refused(t, s.Binary, "XDG_RUNTIME_DIR="+folder); !strings.Contains(why, words) {
			t.Errorf("a folder is refused with %q, want %q", why, words)
		}
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
		t.Errorf("behind the link are %v, %v", entries, err)
	}
}

func (s Suite) loopback(t *testing.T) {
	p := Start(t, s.Binary, "ADDRESS=tcp:127.0.0.1:0")
	Connect(t, p.Address, check).Read("synced")
	p.Go()
	p.Done()
	p.End()
	for _, address := range []string{"tcp:0.0.0.0:0", "tcp:127.0.0.1", "tcp:127.0.0.1:99999", "http:x", "unix:" + strings.Repeat("x", 200)} {
		if why := Refused(t, s.Binary, "ADDRESS="+address); !strings.HasPrefix(why, "open event socket: ") || strings.Count(why, "\n") != 1 {
			t.Errorf("%s is rejected with: %s", address, why)
		}
	}
}
