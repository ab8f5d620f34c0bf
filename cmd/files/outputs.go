package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
)

// outputFlag marks the flags that name a file to write.
const outputFlag = "llmtop_output"

// OutputFlag adds a flag that names a file to write.
func OutputFlag(set *pflag.FlagSet, to *string, name, usage string) {
	set.StringVar(to, name, "", usage)
	_ = set.SetAnnotation(name, outputFlag, nil) // the flag exists
}

// CheckOutputs refuses flags that write to the same file: each would overwrite the other.
func CheckOutputs(set *pflag.FlagSet) (err error) {
	by := map[string]string{} // flags by file
	set.Visit(func(f *pflag.Flag) {
		name := f.Value.String()
		if _, output := f.Annotations[outputFlag]; !output || name == "" {
			return
		}
		path, failed := filepath.Abs(name)
		if failed != nil {
			path = name
		}
		if other := by[path]; other != "" && err == nil {
			err = exit.Usagef("--%s and --%s: both write to %s: name another file", other, f.Name, name)
		}
		by[path] = f.Name
	})
	return err
}

// OpenOutput opens a file for writing, readable only by its owner if private; "-" is standard output, "" returns nil.
func OpenOutput(name string, private bool) (*os.File, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return console.Raw, nil
	}
	file, err := Create(name, private)
	if err != nil {
		return nil, exit.Usagef("write report: %w", err)
	}
	return file, nil
}

// WriteOutput writes to a file of OpenOutput and closes it.
func WriteOutput(file *os.File, to func(io.Writer) error) error {
	if file == nil {
		return nil
	}
	var err error
	if file == console.Raw {
		err = to(console.Out)
	} else {
		err = errors.Join(to(file), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
