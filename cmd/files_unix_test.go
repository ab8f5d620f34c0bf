//go:build unix

package cmd

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
)

// TestEndlessFiles checks that every flag and argument that names a file refuses an endless one, in one line, or a pipe that nobody writes to.
func TestEndlessFiles(t *testing.T) {
	const zero, server = "/dev/zero", "http://127.0.0.1:9"
	cast, pipe := filepath.Join(t.TempDir(), "x.cast"), filepath.Join(t.TempDir(), "pipe") // without a writer
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"--config", zero}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"run", "--config", zero, "-p", "x"}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"serve", "--config", zero}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"attach", "--config", zero, server}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"proxy", "--config", zero, "--to", server}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"bench", "--config", zero}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"replay", "--config", zero, "x"}},
		{"read config /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"cast", "--config", zero, "--cast", cast}},
		{"read token /dev/zero: longer than 64 KiB", exit.CodeUsage, []string{"serve", "--token-file", zero, "--listen", "tcp:127.0.0.1:0"}},
		{"read token /dev/zero: longer than 64 KiB", exit.CodeUsage, []string{"attach", "--headless", "--token-file", zero, server}},
		{"read token /dev/zero: longer than 64 KiB", exit.CodeUsage, []string{"bench", "--token-file", zero, "tcp:127.0.0.1:9"}},
		{"read token /dev/zero: longer than 64 KiB", exit.CodeUsage, []string{"proxy", "--headless", "--token-file", zero, "--to", server, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"}},
		{"read API key /dev/zero: longer than 64 KiB", exit.CodeUsage, []string{"attach", "--headless", "--api-key-file", zero, server}},
		{"read API key /dev/zero: longer than 64 KiB", exit.CodeUsage, []string{"bench", "--api-key-file", zero, server}},
		{"read script /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"replay", "--cast", cast, "--script", zero, "x"}},
		{"read script /dev/zero: longer than 256 KiB", exit.CodeUsage, []string{"cast", "--cast", cast, "--script", zero}},
		{"read prompt from /dev/zero: longer than 65536 KiB", exit.CodeUsage, []string{"run", "-f", zero}},
		{"--prompts /dev/zero: line 1: longer than 16 MiB", exit.CodeUsage, []string{"bench", "--prompts", zero}},
		{"/dev/zero is not a regular file", exit.CodeUsage, []string{"run", zero, "-p", "x"}},
		{"open model missing.gguf: no such file or directory", exit.CodeUsage, []string{"run", "missing.gguf"}}, // not that it lacks a prompt
		{"pipe is not a regular file", exit.CodeUsage, []string{"run", pipe, "-p", "x"}},
		{"it is not a regular file", exit.CodeUsage, []string{"replay", pipe}},
		{"it is not a regular file", exit.CodeUsage, []string{"report", pipe}},
		{"it is not a regular file", exit.CodeNotCompared, []string{"compare", pipe, zero}},
		{"it is not a regular file", exit.CodeUsage, []string{"replay", zero}},
		{"it is not a regular file", exit.CodeUsage, []string{"report", zero}},
		{"it is not a regular file", exit.CodeNotCompared, []string{"compare", zero, zero}},
		{"it has 0 bytes", exit.CodeUsage, []string{"engine", "install", "llamacpp", "--from", zero}},
	} {
		_, _, err := llmtop(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || exit.Code(err) != c.code {
			t.Errorf("%q: %v, exit code %d; want %q, %d", c.args, err, exit.Code(err), c.want, c.code)
		}
	}
}
