//go:build unix

package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestFilesThatArePipes checks that files may be pipes, like <(...) of a shell.
func TestFilesThatArePipes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = io.WriteString(w, "secret\n")
		w.Close()
	}()
	if _, err := os.Stat("/dev/fd/0"); err != nil {
		t.Skipf("there is no /dev/fd here: %v", err)
	}
	name := filepath.Join("/dev/fd", fmt.Sprint(r.Fd()))
	if got, err := Token(name); err != nil || got != "secret" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestReadFile checks the exact size limit.
func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	for n, fits := range map[int]bool{0: true, 1024: true, 1025: false} {
		if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
		raw, err := Read(name, 1024)
		if fits != (err == nil) || fits && len(raw) != n || err != nil && err.Error() != "longer than 1 KiB" {
			t.Errorf("%d bytes: %d, %v", n, len(raw), err)
		}
	}
	if _, err := Read(filepath.Dir(name), 1024); err == nil || err.Error() != "is a directory" {
		t.Errorf("a folder: %v", err)
	}
}
