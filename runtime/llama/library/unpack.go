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
)

// bounds are what an archive may hold at most.
type bounds struct {
	files int   // entries
	bytes int64 // of all files together
}

// trusted bounds those whose hash was checked: the largest known has 22 files of 180 MB.
var trusted = bounds{files: 1000, bytes: 2 << 30}

// top is the folder that everything in an npm archive is in.
const top = "package/"

// unpack writes the files of an npm archive below a folder, and calls wrote with the bytes written so far. It takes regular files
// alone: no links, no devices, nothing that would lie elsewhere.
func unpack(r io.Reader, into *os.Root, limit bounds, wrote func(int64)) error {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	defer packed.Close()
	archive := tar.NewReader(packed)
	total, files := int64(0), 0
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if files++; files > limit.files {
			return fmt.Errorf("read archive: it has more than %d entries", limit.files)
		}
		name, err := inside(h)
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if name == "" {
			continue
		}
		if h.Size > limit.bytes-total {
			return fmt.Errorf("read archive: its files have more than %d bytes", limit.bytes)
		}
		if err := write(into, name, archive, h.Size, func(n int64) { wrote(total + n) }); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		total += h.Size
	}
	if files == 0 {
		return errors.New("read archive: it is empty")
	}
	return drain(packed, limit.bytes)
}

// drain reads what follows the last entry, for the checksum at the end of the stream.
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

// inside is where an entry goes, as a path of the system below the top folder; "" for a folder, which its files make.
func inside(h *tar.Header) (string, error) {
	rest, found := strings.CutPrefix(path.Clean(h.Name), strings.TrimSuffix(top, "/"))
	rest, below := strings.CutPrefix(rest, "/")
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return "", nil
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
		return "", fmt.Errorf("%q is no file and no folder", h.Name)
	case found && h.Typeflag == tar.TypeDir && (below || rest == ""):
		return "", nil
	case !found || !below || strings.ContainsAny(rest, "\\:\x00"):
		return "", fmt.Errorf("%q does not belong in a package", h.Name)
	}
	local, err := filepath.Localize(rest)
	if err != nil {
		return "", fmt.Errorf("%q does not belong in a package", h.Name)
	}
	return local, nil
}

// write makes a file of exactly so many bytes, and the folders that it is in.
func write(into *os.Root, name string, from io.Reader, size int64, wrote func(int64)) error {
	if err := into.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.CopyN(&counted{f, 0, wrote}, from, size)
	return errors.Join(err, f.Close())
}

// counted tells how many bytes have been written to it.
type counted struct {
	io.Writer
	n     int64
	wrote func(int64)
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	c.wrote(c.n)
	return n, err
}
