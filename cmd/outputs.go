package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// formats are the ways to write a report, by the name of the flag that asks for them.
var formats = []struct {
	flag, what string
	write      func(*report.Report, io.Writer) error
}{
	{"json", "the report as JSON", (*report.Report).WriteJSON},
	{"jsonl", "the requests as JSON Lines", (*report.Report).WriteJSONL},
	{"csv", "the stages as CSV", (*report.Report).WriteCSV},
	{"markdown", "a summary as Markdown", (*report.Report).WriteMarkdown},
	{"html", "a summary as a page with charts", (*report.Report).WriteHTML},
}

// reportFiles are the files that a report is to go to, by format; none means text on standard output.
type reportFiles struct {
	names map[string]*string
}

// bind adds a flag for each format. condition is appended to what it says of itself.
func (f *reportFiles) bind(set *pflag.FlagSet, condition string) {
	f.names = map[string]*string{}
	for _, format := range formats {
		f.names[format.flag] = set.String(format.flag, "", "write "+format.what+" to this file, - for standard output"+condition)
	}
}

func (f *reportFiles) any() bool {
	for _, name := range f.names {
		if *name != "" {
			return true
		}
	}
	return false
}

// headlessOnly is the condition on which run and replay report.
const headlessOnly = " (with --headless)"

// checkHeadless refuses files of a report that nobody will make.
func (f *reportFiles) checkHeadless(headless bool) error {
	if !headless && f.any() {
		return usagef("--json, --jsonl, --csv, --markdown and --html need --headless")
	}
	return nil
}

// outputs are these files, open, in the order of formats; nil where there is none. They are opened before anything is computed, so that a
// path that cannot be written costs nothing.
type outputs []*os.File

func (f *reportFiles) open() (outputs, error) {
	out := make(outputs, len(formats))
	for i, format := range formats {
		file, err := create(*f.names[format.flag])
		if err != nil {
			out.discard()
			return nil, err
		}
		out[i] = file
	}
	return out, nil
}

// create opens a file for writing; "-" is standard output, "" is none.
func create(name string) (*os.File, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return os.Stdout, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, usagef("write report: %w", err)
	}
	return file, nil
}

// discard removes the files again.
func (out outputs) discard() {
	for _, file := range out {
		if file != nil && file != os.Stdout {
			_ = file.Close()
			_ = os.Remove(file.Name()) // an empty file that stays does no harm
		}
	}
}

func (out outputs) write(r *report.Report, stdout io.Writer) error {
	if !slices.ContainsFunc(out, func(f *os.File) bool { return f != nil }) {
		return r.WriteText(stdout)
	}
	for i, file := range out {
		if err := write(file, func(w io.Writer) error { return formats[i].write(r, w) }); err != nil {
			return err
		}
	}
	return nil
}

func write(file *os.File, to func(io.Writer) error) error {
	if file == nil {
		return nil
	}
	err := to(file)
	if file != os.Stdout {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// reporting makes the report of what a snapshot shows, as JSON that is safe to print.
func reporting(meta report.Meta) func(*store.Snapshot) ([]byte, error) {
	meta.Version = versionString()
	return func(s *store.Snapshot) ([]byte, error) {
		var out bytes.Buffer
		if err := report.Live(meta, s).WriteJSON(&out); err != nil {
			return nil, err
		}
		return []byte(clean.Printable(out.String())), nil
	}
}
