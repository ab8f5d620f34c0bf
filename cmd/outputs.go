package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// formats are the formats of reports, by the name of their flag.
var formats = []struct {
	flag, what string
	write      func(*report.Report, io.Writer) error
	texts      bool // may contain generated text
}{
	{"json", "the report as JSON", (*report.Report).WriteJSON, true},
	{"jsonl", "the requests as JSON Lines", (*report.Report).WriteJSONL, true},
	{"csv", "the stages as CSV", (*report.Report).WriteCSV, false},
	{"markdown", "a summary as Markdown", (*report.Report).WriteMarkdown, false},
	{"html", "a summary as a page with charts", (*report.Report).WriteHTML, false},
}

// reportFiles are the output files of a report by format; none: text on standard output.
type reportFiles struct {
	names map[string]*string
	text  bool // include generated text
}

// name returns the file for the flag of a format, "" for none. Commands without these flags have none.
func (f *reportFiles) name(flag string) string {
	if name := f.names[flag]; name != nil {
		return *name
	}
	return ""
}

// bind adds a flag for each format. condition is appended to its usage.
func (f *reportFiles) bind(set *pflag.FlagSet, condition string) {
	f.names = map[string]*string{}
	for _, format := range formats {
		f.names[format.flag] = set.String(format.flag, "", "write "+format.what+" to `FILE`, - for stdout"+condition)
	}
	set.BoolVar(&f.text, "report-text", false, "include generated text in --json and --jsonl; only you can read the files"+condition)
}

func (f *reportFiles) any() bool {
	for _, name := range f.names {
		if *name != "" {
			return true
		}
	}
	return false
}

// headlessOnly is the condition of the report flags of commands with a screen.
const headlessOnly = " (with --headless)"

// checkHeadless refuses report flags without --headless.
func (f *reportFiles) checkHeadless(headless bool) error {
	if !headless && (f.any() || f.text) {
		return usagef("--json, --jsonl, --csv, --markdown, --html and --report-text need --headless")
	}
	return nil
}

// outputs are the open files in the order of formats, nil for none. They are opened before the run, so that an unusable
// path fails early.
type outputs struct {
	files []*os.File
	text  bool
}

func (f *reportFiles) open() (*outputs, error) {
	if f.text && f.name("json") == "" && f.name("jsonl") == "" {
		return nil, usagef("--report-text needs --json FILE or --jsonl FILE: other formats have no text")
	}
	out := &outputs{make([]*os.File, len(formats)), f.text}
	for i, format := range formats {
		file, err := create(f.name(format.flag), f.text && format.texts)
		if err != nil {
			out.discard()
			return nil, err
		}
		out.files[i] = file
	}
	return out, nil
}

// create opens a file for writing, readable only by its owner if private; "-" is standard output, "" returns nil.
func create(name string, private bool) (*os.File, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return rawOut, nil
	}
	file, err := createFile(name, private)
	if err != nil {
		return nil, usagef("write report: %w", err)
	}
	return file, nil
}

// createFile is os.Create for a file readable only by its owner if private, even if it existed with other permissions.
// The mode of a device or pipe does not change.
func createFile(name string, private bool) (*os.File, error) {
	if !private {
		return os.Create(name)
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
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

// discard closes and removes the files.
func (out *outputs) discard() {
	for _, file := range out.files {
		if file != nil && file != rawOut {
			_ = file.Close()
			_ = os.Remove(file.Name()) // an empty file does no harm
		}
	}
}

func (out *outputs) write(r *report.Report, stdout io.Writer) error {
	if !out.text {
		r.DropText()
	}
	if !slices.ContainsFunc(out.files, func(f *os.File) bool { return f != nil }) {
		return r.WriteText(stdout)
	}
	for i, file := range out.files {
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
	var err error
	if file == rawOut {
		err = to(consoleOut)
	} else {
		err = errors.Join(to(file), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// reporting returns a function that makes the JSON report of a snapshot.
func reporting(meta report.Meta) func(*store.Snapshot) ([]byte, error) {
	meta.Version = versionString()
	return func(s *store.Snapshot) ([]byte, error) {
		var out bytes.Buffer
		if err := report.FromSnapshot(meta, s).WriteJSON(&out); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
}
