//go:build unix

package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// anotherUser owns what must not be trusted.
const anotherUser = 12345

// giveAway changes the owner of a file to another user, which only root can do.
func giveAway(t *testing.T, name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	if err := os.Lchown(name, anotherUser, anotherUser); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUntrustedFolder: in a well-known folder that another user could have created or filled, no engine listens, is
// watched or is found. Every error has the reason and the fix. The folder is not changed.
func TestUntrustedFolder(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(t *testing.T, dir, other string)
		want []string
	}{
		"a symbolic link": {
			func(t *testing.T, dir, other string) {
				must(t, os.Mkdir(other, 0o700))
				must(t, os.Symlink(other, dir))
			}, []string{"it is a symbolic link", "XDG_RUNTIME_DIR"},
		},
		"a link to nowhere": {
			func(t *testing.T, dir, other string) { must(t, os.Symlink(other, dir)) }, []string{"it is a symbolic link"},
		},
		"a file": {
			func(t *testing.T, dir, _ string) { must(t, os.WriteFile(dir, nil, 0o600)) }, []string{"it is a file", "remove it"},
		},
		"another user's": {
			func(t *testing.T, dir, _ string) {
				must(t, os.Mkdir(dir, 0o755))
				giveAway(t, dir)
			}, []string{"it belongs to user 12345", "XDG_RUNTIME_DIR"},
		},
		"open to all": {
			func(t *testing.T, dir, _ string) {
				must(t, os.Mkdir(dir, 0o700))
				must(t, os.Chmod(dir, 0o777))
			}, []string{"other users may write to it", "chmod 700 "},
		},
		"open to a group": {
			func(t *testing.T, dir, _ string) {
				must(t, os.Mkdir(dir, 0o700))
				must(t, os.Chmod(dir, 0o770))
			}, []string{"other users may write to it", "chmod 700 "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			t.Setenv("XDG_RUNTIME_DIR", base)
			other := filepath.Join(base, "other")
			tt.make(t, Folder(), other)
			at := Address("engine")
			_, listening := Listen(at, Options{})
			_, watching := Dial(at, "", engine.NewClock())
			_, looking := Look(t.Context(), false)
			for what, err := range map[string]error{"listening": listening, "watching": watching, "looking": looking} {
				if !errors.Is(err, ErrUntrusted) {
					t.Errorf("%s: %v", what, err)
					continue
				}
				for _, words := range append(tt.want, Folder()) {
					if !strings.Contains(err.Error(), words) {
						t.Errorf("%s: %q lacks %q", what, err, words)
					}
				}
			}
			if entries, err := os.ReadDir(other); err == nil && len(entries) > 0 {
				t.Errorf("the folder of the link holds %v", entries)
			}
		})
	}
}

// TestFolderThatStopsBeingTrusted: it ends a client that was prepared before.
func TestFolderThatStopsBeingTrusted(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	c, err := Dial(Address("engine"), "", engine.NewClock())
	must(t, err)
	must(t, os.Mkdir(Folder(), 0o700))
	must(t, os.Chmod(Folder(), 0o777))
	var got log
	if err := c.Run(context.Background(), &got); !errors.Is(err, ErrUntrusted) {
		t.Errorf("it ends with %v", err)
	}
	if r := got.remote(); r.Link != event.LinkRefused || !strings.Contains(r.Reason, "chmod 700") {
		t.Errorf("the connection is %+v", r)
	}
}

// TestUntrustedSockets: in a trusted folder they are skipped and not watched.
func TestUntrustedSockets(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", base)
	good := server(t, Address("good"), Options{})
	elsewhere := server(t, "unix:"+filepath.Join(base, "elsewhere.sock"), Options{})
	must(t, os.Symlink(elsewhere.address.path, filepath.Join(Folder(), "link-1.sock")))
	must(t, os.WriteFile(filepath.Join(Folder(), "file-1.sock"), nil, 0o600))
	want := map[string]string{"link-1.sock": "it is a symbolic link", "file-1.sock": "it is a file"}
	if os.Geteuid() == 0 {
		l, err := net.Listen("unix", filepath.Join(Folder(), "given-1.sock"))
		must(t, err)
		defer l.Close()
		giveAway(t, l.Addr().String())
		want["given-1.sock"] = "it belongs to user 12345"
	} else {
		t.Log("only root can give a socket to another user: that case is left out")
	}
	for name, words := range want {
		if _, err := Dial("unix:"+filepath.Join(Folder(), name), "", engine.NewClock()); !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), words) {
			t.Errorf("watching %s: %v", name, err)
		}
		if s, err := Listen("unix:"+filepath.Join(Folder(), name), Options{}); err == nil {
			t.Errorf("listens in place of %s: %v", name, s.Close())
		}
	}
	found, err := Look(t.Context(), false)
	if err != nil || len(found) != 1 || found[0].Address != good.Address() {
		t.Errorf("found %+v, %v", found, err)
	}
}

// TestPathsOfTheUsersChoice: other folders may have any owner: only the well-known one has a name that others can
// guess.
func TestPathsOfTheUsersChoice(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	shared := t.TempDir()
	must(t, os.Chmod(shared, 0o777|os.ModeSticky))
	s := server(t, "unix:"+filepath.Join(shared, "s.sock"), Options{})
	var got eventtest.Log
	attach(t, s.Address(), "", &got)
	eventtest.Wait(t, "a connection", func() bool { return s.Readers() == 1 })
}

// TestRelativeRuntimeFolder: it is ignored, as the XDG specification requires.
func TestRelativeRuntimeFolder(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "here")
	if dir := Folder(); !filepath.IsAbs(dir) {
		t.Errorf("the folder is %s", dir)
	}
}
