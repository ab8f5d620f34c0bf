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

// TestOutputsOnOldFiles checks that a report replaces all of a longer one, that without a report the old one stays, and
// that devices are not removed.
func TestOutputsOnOldFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(name, []byte("a longer report"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{name, os.DevNull} {
		file, err := OpenOutput(path, false)
		if err != nil {
			t.Fatal(err)
		}
		if path == os.DevNull && os.Geteuid() == 0 { // do not endanger the machine that tests this
			file.Close()
			continue
		}
		Discard([]*os.File{nil, file})
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	file, err := OpenOutput(name, false)
	if err != nil {
		t.Fatal(err)
	}
	err = WriteOutput(file, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		return err
	})
	if got, _ := os.ReadFile(name); err != nil || string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
}
