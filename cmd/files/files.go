// Package files reads and writes the files that the command line names: prompts, secrets, scripts and reports.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Maximum sizes of files that users write. Anything longer is a device, an endless pipe, or the wrong file.
const (
	maxPrompt = 64 << 20  // one prompt: longer than any context
	MaxConfig = 256 << 10 // the config file and scripts for recorded screens
	maxSecret = 64 << 10  // a token or an API key
)

// Read reads a file or pipe of at most most bytes. The error does not contain the name of the file.
func Read(name string, most int) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, Cause(err)
	}
	defer file.Close()
	return ReadAll(file, most)
}

// ReadAll reads r up to its end, at most most bytes.
func ReadAll(r io.Reader, most int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, Cause(err)
	}
	if len(raw) > most {
		return nil, fmt.Errorf("longer than %d KiB", most>>10)
	}
	return raw, nil
}

// Cause returns the cause of a file error, without the path.
func Cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// Create is os.Create for a file readable only by its owner if private, even if it existed with other permissions.
// The mode of a device or pipe does not change.
func Create(name string, private bool) (*os.File, error) { return open(name, private, os.O_TRUNC) }

// open is Create with os.O_TRUNC, or 0 to keep what the file has.
func open(name string, private bool, truncate int) (*os.File, error) {
	if !private {
		return os.OpenFile(name, os.O_RDWR|os.O_CREATE|truncate, 0o666)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|truncate, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ShortenHome replaces the user's home folder in a path by ~.
func ShortenHome(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return path
	}
	if rest, below := strings.CutPrefix(path, home+string(os.PathSeparator)); below {
		return "~" + string(os.PathSeparator) + rest
	}
	return path
}
