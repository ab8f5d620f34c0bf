package library

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Limits of archives whose hash was verified: entries, and bytes of all files. The largest one has 22 files of 180 MB.
const maxFiles, maxBytes = 1000, 2 << 30

// top is the top folder of npm archives.
const top = "package/"

// unpack writes the files of an npm archive below a folder, and calls wrote with the bytes written so far. It accepts
// regular files only, up to files of them with bytes in all: no links, no devices, no paths outside the folder.
func unpack(r io.Reader, into *os.Root, files int, bytes int64, wrote func(int64)) error {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	defer packed.Close()
	archive := tar.NewReader(packed)
	total, n := int64(0), 0
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if n++; n > files {
			return fmt.Errorf("read archive: more than %d entries", files)
		}
		name, err := entryPath(h)
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if name == "" {
			continue
		}
		if h.Size > bytes-total {
			return fmt.Errorf("read archive: more than %d bytes in files", bytes)
		}
		if err := write(into, name, archive, h.Size, func(n int64) { wrote(total + n) }); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		total += h.Size
	}
	if n == 0 {
		return errors.New("read archive: no files")
	}
	return drain(packed, bytes)
}

// drain reads what follows the last entry, to verify the checksum at the end of the stream.
func drain(packed io.Reader, most int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(packed, most))
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	if n == most {
		return fmt.Errorf("read archive: more than %d bytes follow its files", most)
	}
	return nil
}

// entryPath returns the path of an entry below the top folder, in the system's form; "" for a folder, which its files
// create.
func entryPath(h *tar.Header) (string, error) {
	rest, found := strings.CutPrefix(path.Clean(h.Name), strings.TrimSuffix(top, "/"))
	rest, below := strings.CutPrefix(rest, "/")
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return "", nil
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
		return "", fmt.Errorf("%s is neither file nor folder", clean.Quote(h.Name))
	case found && h.Typeflag == tar.TypeDir && (below || rest == ""):
		return "", nil
	case !found || !below || strings.ContainsAny(rest, "\\:\x00"):
		return "", fmt.Errorf("%s is not allowed in a package", clean.Quote(h.Name))
	}
	local, err := filepath.Localize(rest)
	if err != nil {
		return "", fmt.Errorf("%s is not allowed in a package", clean.Quote(h.Name))
	}
	return local, nil
}

// write creates a file of exactly size bytes, and its folders.
func write(into *os.Root, name string, from io.Reader, size int64, wrote func(int64)) error {
	if err := into.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.CopyN(&countingWriter{f, 0, wrote}, from, size)
	return errors.Join(err, f.Close())
}

// countingWriter is a writer that reports the number of bytes written.
type countingWriter struct {
	io.Writer
	n     int64
	wrote func(int64)
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	c.wrote(c.n)
	return n, err
}
