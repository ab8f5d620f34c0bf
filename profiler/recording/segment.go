package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// fileMode makes recordings, which may contain prompts, readable by their owner only.
const fileMode = 0o600

// segmentName returns the file name of a segment: FILE, FILE.1, FILE.2, …
func segmentName(path string, segment int) string {
	if segment == 0 {
		return path
	}
	return path + "." + strconv.Itoa(segment)
}

// segments returns the sorted numbers of the segments after the first of the recording at path.
func segments(path string) ([]int, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		suffix, ok := strings.CutPrefix(name, filepath.Base(path)+".")
		if n, err := strconv.Atoi(suffix); ok && err == nil && n > 0 && strconv.Itoa(n) == suffix {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// claim opens the first segment of a new recording and locks it against other recorders until it is closed.
func claim(path string, replace bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := prepare(f, path, replace); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// prepare locks the file, checks that it may be overwritten, and empties it.
func prepare(f *os.File, path string, replace bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if ours, err := lock(f); err != nil {
		return fmt.Errorf("lock it: %w", err)
	} else if !ours {
		return errors.New("another recorder is writing to it")
	}
	if info, err = f.Stat(); err != nil { // another recorder may have written it meanwhile
		return err
	}
	more, err := segments(path)
	if err != nil {
		return err
	}
	if !replace && info.Size() > 0 {
		return errors.New("it exists: choose another name, or remove it")
	}
	if !replace && len(more) > 0 {
		return fmt.Errorf("%s exists: choose another name, or remove it", segmentName(path, more[0]))
	}
	for _, n := range more {
		if err := os.Remove(segmentName(path, n)); err != nil {
			return err
		}
	}
	return errors.Join(f.Chmod(fileMode), f.Truncate(0))
}
