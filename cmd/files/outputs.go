package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// CheckOutputs refuses flags that write to the same file, each of which would overwrite the other, and flags that would
// overwrite a file that the command reads: an argument or the value of another flag.
func CheckOutputs(set *pflag.FlagSet, args []string) error {
	by := map[string]string{}                                               // flags by file
	args = slices.Concat(args, strings.Split(strings.Join(args, ","), ",")) // compare takes several files
	var outputs []*pflag.Flag
	set.Visit(func(f *pflag.Flag) {
		if _, output := f.Annotations[outputFlag]; output && f.Value.String() != "" {
			outputs = append(outputs, f)
		} else if list, ok := f.Value.(pflag.SliceValue); ok {
			args = append(args, list.GetSlice()...)
		} else {
			args = append(args, f.Value.String())
		}
	})
	for _, f := range outputs {
		name := f.Value.String()
		path, failed := filepath.Abs(name)
		if failed != nil {
			path = name
		}
		if other := by[path]; other != "" {
			return exit.Usagef("--%s and --%s: both write to %s: name another file", other, f.Name, name)
		}
		by[path] = f.Name
		if info, failed := os.Stat(name); failed != nil || !info.Mode().IsRegular() {
			continue
		} else if i := slices.IndexFunc(args, func(arg string) bool {
			read, failed := os.Stat(arg)
			return failed == nil && os.SameFile(info, read)
		}); i >= 0 {
			return exit.Usagef("--%s %s: it would overwrite the input %s: name another file", f.Name, name, args[i])
		}
	}
	return nil
}

// OpenOutput opens a file for WriteOutput, readable only by its owner if private; "-" is standard output, "" returns nil.
// What the file has stays until then, so that a run that fails does not lose the report of an earlier one.
func OpenOutput(name string, private bool) (*os.File, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return console.Raw, nil
	}
	file, err := open(name, private, 0)
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
		if info, failed := file.Stat(); failed == nil && info.Mode().IsRegular() {
			err = file.Truncate(0)
		}
		err = errors.Join(err, to(file), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Discard closes files of OpenOutput and removes those that are still empty.
func Discard(outputs []*os.File) {
	for _, file := range outputs {
		if file == nil || file == console.Raw {
			continue
		}
		info, err := file.Stat()
		_ = file.Close()
		if err == nil && info.Mode().IsRegular() && info.Size() == 0 { // not a device or a pipe
			_ = os.Remove(file.Name()) // an empty file does no harm
		}
	}
}
