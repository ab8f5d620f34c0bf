package files

import (
	"errors"
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

// Reports are the output files of a report by format; none: text on standard output.
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

// Any reports whether there is a file for any format.
func (r *Reports) Any() bool {
	return slices.ContainsFunc(formats, func(f reportFormat) bool { return r.Name(f.flag) != "" })
}

// Bind adds a flag for each format. condition is appended to its usage.
func (r *Reports) Bind(set *pflag.FlagSet, condition string) {
	r.names = map[string]*string{}
	for _, format := range formats {
		r.names[format.flag] = new(string)
		OutputFlag(set, r.names[format.flag], format.flag, "write "+format.what+" to `FILE`, - for stdout"+condition)
	}
	set.BoolVar(&r.text, "report-text", false, "include generated text in --json and --jsonl; only you can read the files"+condition)
}

// HeadlessOnly is the condition of the report flags of commands with a screen.
const HeadlessOnly = " (with --headless)"

// CheckHeadless refuses report flags without --headless.
func (r *Reports) CheckHeadless(headless bool) error {
	if !headless && (r.text || r.Any()) {
		return exit.Usagef("--json, --jsonl, --csv, --csv-tokens, --csv-stages, --markdown, --html and --report-text need --headless")
	}
	return nil
}

// Write writes the report that build returns. It opens the files first, so that an unusable path fails before the run,
// and removes them if build returns no report. An error of build does not keep the report from being written.
func (r *Reports) Write(stdout io.Writer, build func() (*report.Report, error)) error {
	outputs, err := r.open()
	if err != nil {
		return err
	}
	built, err := build()
	if built == nil {
		discard(outputs)
		return err
	}
	return errors.Join(err, r.writeAll(outputs, built, stdout))
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
			discard(outputs)
			return nil, err
		}
		outputs[i] = file
	}
	return outputs, nil
}

func (r *Reports) writeAll(outputs []*os.File, built *report.Report, stdout io.Writer) error {
	if !r.text {
		built.DropText()
	}
	if !slices.ContainsFunc(outputs, func(f *os.File) bool { return f != nil }) {
		return built.WriteText(stdout)
	}
	for i, file := range outputs {
		if err := WriteOutput(file, func(w io.Writer) error { return formats[i].write(built, w) }); err != nil {
			return err
		}
	}
	return nil
}

// discard closes and removes files.
func discard(outputs []*os.File) {
	for _, file := range outputs {
		if file != nil && file != console.Raw {
			_ = file.Close()
			_ = os.Remove(file.Name()) // an empty file does no harm
		}
	}
}
