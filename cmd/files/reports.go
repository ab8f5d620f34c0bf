package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/report"
)

// reportFormat is a format of reports.
type reportFormat struct {
	flag, what string
	write      func(*report.Report, io.Writer) error
	texts      bool // may contain generated text
}

// formats are the formats of reports, by the name of their flag.
var formats = []reportFormat{
	{"json", "the report as JSON", (*report.Report).WriteJSON, true},
	{"jsonl", "the requests as JSON Lines", (*report.Report).WriteJSONL, true},
	{"csv", "the requests as CSV (bench: the numbers)", (*report.Report).WriteCSV, false},
	{"csv-tokens", "the tokens as CSV", (*report.Report).WriteTokensCSV, false},
	{"csv-stages", "the stages as CSV", (*report.Report).WriteStagesCSV, false},
	{"markdown", "a summary as Markdown", (*report.Report).WriteMarkdown, false},
	{"html", "a summary as a page with charts", (*report.Report).WriteHTML, false},
}

// Reports are the output files of a report by format.
type Reports struct {
	names map[string]*string
	text  bool // include generated text
}

// Name returns the file for the flag of a format, "" for none. Commands without these flags have none.
func (r *Reports) Name(flag string) string {
	if name := r.names[flag]; name != nil {
		return *name
	}
	return ""
}

// Any reports whether a flag is set, so that a report is to be written.
func (r *Reports) Any() bool {
	return r.text || slices.ContainsFunc(formats, func(f reportFormat) bool { return r.Name(f.flag) != "" })
}

// TakesStdout reports whether standard output is the file of a format. Nothing else may then be printed there.
func (r *Reports) TakesStdout() bool {
	return slices.ContainsFunc(formats, func(f reportFormat) bool { return r.Name(f.flag) == "-" })
}

// Bind adds a flag for each format.
func (r *Reports) Bind(set *pflag.FlagSet) {
	r.names = map[string]*string{}
	for _, format := range formats {
		r.names[format.flag] = new(string)
		OutputFlag(set, r.names[format.flag], format.flag, "write "+format.what+" to `FILE`, - for stdout")
	}
	set.BoolVar(&r.text, "report-text", false, "include generated text in --json and --jsonl; only you can read the files")
}

// Printed says what Write prints.
type Printed struct {
	Stdout io.Writer // receives the text of a report
	Notes  io.Writer // receives the names of the files, and the summary if Stdout is one of them
	Full   bool      // print the whole report, or nothing if there are files; otherwise print a summary
}

// Write writes the report that build returns. It opens the files first, so that an unusable path fails before the run,
// and discards them if build returns no report. An error of build does not keep the report from being written.
func (r *Reports) Write(to Printed, build func() (*report.Report, error)) error {
	outputs, err := r.open()
	if err != nil {
		return err
	}
	built, err := build()
	if built == nil {
		Discard(outputs)
		return err
	}
	return errors.Join(err, r.writeAll(outputs, built, to))
}

// open returns the open files in the order of formats, nil for none.
func (r *Reports) open() ([]*os.File, error) {
	if r.text && r.Name("json") == "" && r.Name("jsonl") == "" {
		return nil, exit.Usagef("--report-text needs --json FILE or --jsonl FILE: other formats have no text")
	}
	outputs := make([]*os.File, len(formats))
	for i, format := range formats {
		file, err := OpenOutput(r.Name(format.flag), r.text && format.texts)
		if err != nil {
			Discard(outputs)
			return nil, err
		}
		outputs[i] = file
	}
	return outputs, nil
}

// writeAll writes the files first: nobody may be reading the summary any more.
func (r *Reports) writeAll(outputs []*os.File, built *report.Report, to Printed) (err error) {
	if !r.text {
		built.DropText()
	}
	if to.Full && !r.Any() {
		return built.WriteText(to.Stdout)
	}
	var wrote []string
	for i, file := range outputs {
		failed := WriteOutput(file, func(w io.Writer) error { return formats[i].write(built, w) })
		if err = errors.Join(err, failed); failed == nil && file != nil && file != console.Raw {
			wrote = append(wrote, file.Name())
		}
	}
	if to.Full {
		return err
	}
	if r.TakesStdout() {
		to.Stdout = to.Notes
	}
	err = errors.Join(err, built.WriteSummary(to.Stdout))
	for _, name := range wrote {
		fmt.Fprintf(to.Notes, "wrote %s\n", name)
	}
	if !r.Any() {
		fmt.Fprintln(to.Notes, "The whole report: add --json FILE, then run llmtop report FILE.")
	}
	return err
}
