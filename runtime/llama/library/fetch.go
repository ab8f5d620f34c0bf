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
)

// ErrNoNPM is the error of an install that needs npm where there is none.
var ErrNoNPM = errors.New("npm is not there")

// fetch has npm write a package's archive into a folder, and returns the archive's path. npm runs in that folder, so that it goes by the
// user's settings and not by those of whatever project llmtop was started in.
func fetch(ctx context.Context, p Package, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: install Node.js, or get the archive elsewhere with npm pack %s and pass it with --from",
			p.Spec(), ErrNoNPM, p.Spec())
	}
	c := exec.CommandContext(ctx, npm, "pack", "--ignore-scripts", p.Spec())
	c.Dir, c.WaitDelay = dir, 5*time.Second
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("fetch %s: %w", p.Spec(), context.Cause(ctx))
		}
		return "", fmt.Errorf("fetch %s: npm pack: %s", p.Spec(), complaint(said.String(), err))
	}
	path := filepath.Join(dir, p.archive())
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("fetch %s: npm pack wrote no %s", p.Spec(), p.archive())
	}
	return path, nil
}

// complaint is the line in which npm says what went wrong: the first of its errors that is more than a code.
func complaint(said string, otherwise error) string {
	for line := range strings.Lines(said) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), "npm error ")
		if !found {
			rest, found = strings.CutPrefix(strings.TrimSpace(line), "npm ERR! ")
		}
		kind, _, _ := strings.Cut(rest, " ")
		if found && kind != "code" && kind != "errno" && kind != "syscall" {
			return printableLine(rest)
		}
	}
	return otherwise.Error()
}

// printableLine is a line of another program without what a terminal would obey.
func printableLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// verify checks a file against npm's form of a SHA-512, and leaves it at its start.
func verify(f *os.File, integrity string) error {
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("check archive: %w", err)
	}
	want, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(integrity, "sha512-"))
	if err != nil || len(want) != sha512.Size {
		return fmt.Errorf("check archive: %q is no SHA-512", integrity)
	}
	if got := h.Sum(nil); subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("%w: it has SHA-512 %s, expected %s", ErrWrongArchive,
			base64.StdEncoding.EncodeToString(got), strings.TrimPrefix(integrity, "sha512-"))
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// ErrWrongArchive is the error of an archive that is not the one whose hash is pinned.
var ErrWrongArchive = errors.New("the archive is not the pinned one")
