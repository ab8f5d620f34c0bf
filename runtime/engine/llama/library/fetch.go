package library

import (
	"bytes"
	"context"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
)

// ErrNoNPM means that npm is required but not installed.
var ErrNoNPM = errors.New("npm is not installed")

// fetch downloads a package's archive with npm into a folder, and returns the archive's path. npm runs in that folder,
// so that the user's settings apply, not those of the project in which llmtop was started.
func fetch(ctx context.Context, p Package, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: install Node.js, or run npm pack %s on another machine and pass the archive with --from",
			p.Spec(), ErrNoNPM, p.Spec())
	}
	c := exec.CommandContext(ctx, npm, "pack", "--ignore-scripts", p.Spec())
	c.Dir, c.WaitDelay = dir, 5*time.Second
	var output bytes.Buffer
	c.Stderr = &output
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("fetch %s: %w", p.Spec(), context.Cause(ctx))
		}
		return "", fmt.Errorf("fetch %s: npm pack: %s", p.Spec(), npmError(output.String(), err))
	}
	path := filepath.Join(dir, p.archive())
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("fetch %s: npm pack did not write %s", p.Spec(), p.archive())
	}
	return path, nil
}

// npmError returns the line in which npm describes the failure: its first error that is more than a code.
func npmError(output string, otherwise error) string {
	for line := range strings.Lines(output) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		if !found {
			rest, found = strings.CutPrefix(strings.TrimSpace(line), "npm ERR! ")
		}
		kind, _, _ := strings.Cut(rest, " ")
		if found && kind != "code" && kind != "errno" && kind != "syscall" {
			return clean.Line(rest)
		}
	}
	return otherwise.Error()
}

// verify compares a file with npm's form of a SHA-512, and rewinds it.
func verify(f *os.File, integrity string) error {
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("check archive: %w", err)
	}
	want, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(integrity, "sha512-"))
	if err != nil || len(want) != sha512.Size {
		return fmt.Errorf("check archive: %q is not a SHA-512", integrity)
	}
	if got := h.Sum(nil); subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("%w: it has SHA-512 %s, expected %s", ErrWrongArchive,
			base64.StdEncoding.EncodeToString(got), strings.TrimPrefix(integrity, "sha512-"))
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// ErrWrongArchive means that an archive does not have the pinned hash.
var ErrWrongArchive = errors.New("the archive does not match the pinned hash")
