//go:build unix

package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEndlessFiles checks that every flag and argument that names a file refuses an endless one, in one line.
func TestEndlessFiles(t *testing.T) {
	const zero, server = "/dev/zero", "http://127.0.0.1:9"
	cast := filepath.Join(t.TempDir(), "x.cast")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"--config", zero}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"run", "--config", zero, "-p", "x"}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"serve", "--config", zero}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"attach", "--config", zero, server}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"proxy", "--config", zero, "--to", server}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"bench", "--config", zero}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"replay", "--config", zero, "x"}},
		{"read config /dev/zero: longer than 256 KiB", exitUsage, []string{"record", "--config", zero, "--cast", cast}},
		{"read token /dev/zero: longer than 64 KiB", exitUsage, []string{"serve", "--token-file", zero, "--listen", "tcp:127.0.0.1:0"}},
		{"read token /dev/zero: longer than 64 KiB", exitUsage, []string{"attach", "--headless", "--token-file", zero, server}},
		{"read token /dev/zero: longer than 64 KiB", exitUsage, []string{"bench", "--token-file", zero, "tcp:127.0.0.1:9"}},
		{"read token /dev/zero: longer than 64 KiB", exitUsage, []string{"proxy", "--headless", "--token-file", zero, "--to", server, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"}},
		{"read API key /dev/zero: longer than 64 KiB", exitUsage, []string{"attach", "--headless", "--api-key-file", zero, server}},
		{"read API key /dev/zero: longer than 64 KiB", exitUsage, []string{"bench", "--api-key-file", zero, server}},
		{"read script /dev/zero: longer than 256 KiB", exitUsage, []string{"replay", "--cast", cast, "--script", zero, "x"}},
		{"read script /dev/zero: longer than 256 KiB", exitUsage, []string{"record", "--cast", cast, "--script", zero}},
		{"read prompt from /dev/zero: longer than 65536 KiB", exitUsage, []string{"run", "-f", zero}},
		{"--prompts /dev/zero: line 1: longer than 16 MiB", exitUsage, []string{"bench", "--prompts", zero}},
		{"/dev/zero is not a regular file", exitUsage, []string{"run", zero, "-p", "x"}},
		{"/dev/zero is not a regular file", exitUsage, []string{"attach", "--headless", "--imatrix", zero, server}},
		{"it is not a regular file", exitUsage, []string{"replay", zero}},
		{"it is not a regular file", exitUsage, []string{"report", zero}},
		{"it is not a regular file", exitNotCompared, []string{"compare", zero, zero}},
		{"it has 0 bytes", exitUsage, []string{"engine", "install", "llamacpp", "--from", zero}},
	} {
		_, _, err := llmtop(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || exitCode(err) != c.code {
			t.Errorf("%q: %v, exit code %d; want %q, %d", c.args, err, exitCode(err), c.want, c.code)
		}
	}
}

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
	if got, err := token(name); err != nil || got != "secret" {
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
		raw, err := readFile(name, 1024)
		if fits != (err == nil) || fits && len(raw) != n || err != nil && err.Error() != "longer than 1 KiB" {
			t.Errorf("%d bytes: %d, %v", n, len(raw), err)
		}
	}
	if _, err := readFile(filepath.Dir(name), 1024); err == nil || err.Error() != "is a directory" {
		t.Errorf("a folder: %v", err)
	}
}
