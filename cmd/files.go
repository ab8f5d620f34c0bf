package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Maximum sizes of files that users write. Anything longer is a device, an endless pipe, or the wrong file.
const (
	maxPromptBytes = 64 << 20  // one prompt: longer than any context
	maxConfigBytes = 256 << 10 // the config file and scripts for recorded screens
	maxSecretBytes = 64 << 10  // a token or an API key
)

// readFile reads a file or pipe of at most most bytes. The error does not contain the name of the file.
func readFile(name string, most int) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	return readAll(file, most)
}

// readAll reads r up to its end, at most most bytes.
func readAll(r io.Reader, most int) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(raw) > most {
		return nil, fmt.Errorf("longer than %d KiB", most>>10)
	}
	return raw, nil
}

// withoutPath returns the cause of a file error, without the path.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
