package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/profiler/report"
)

// Write writes the report that build returns. It opens the files first, so that an unusable path fails before the run,
// and discards them if build returns no report. An error of build does not keep the report from being written.
//
// If whole, it prints the whole report to stdout, or nothing if there are files; otherwise a summary, and to notes the
// names of the files. If standard output is one of them, the summary goes to notes, too.
func (o *Out) Write(stdout, notes io.Writer, whole bool, build func() (*report.Report, error)) error {
	outputs := make([]*os.File, len(o.kinds))
	for i, k := range o.kinds {
		if k.report == nil {
			continue
		}
		file, err := OpenOutput(o.names[k.ending], o.Text && k.text)
		if err != nil {
			Discard(outputs)
			return err
		}
		outputs[i] = file
	}
	built, err := build()
	if built == nil {
		Discard(outputs)
		return err
	}
	if o.Warnings != nil {
		built.Warnings = append(built.Warnings, o.Warnings()...)
	}
	return errors.Join(err, o.writeAll(outputs, built, stdout, notes, whole))
}

// PrintWarnings prints Warnings, for those who read no report.
func (o *Out) PrintWarnings(notes io.Writer) {
	for _, line := range o.Warnings() {
		fmt.Fprintf(notes, "llmtop: %s\n", line)
	}
}

// writeAll writes the files first: nobody may be reading the summary any more.
func (o *Out) writeAll(outputs []*os.File, built *report.Report, stdout, notes io.Writer, whole bool) (err error) {
	if !o.Text {
		built.DropText()
	}
	if whole && !o.Reports() {
		return built.WriteText(stdout)
	}
	var wrote []string
	for i, file := range outputs {
		failed := WriteOutput(file, func(w io.Writer) error { return o.kinds[i].report(built, w) })
		if err = errors.Join(err, failed); failed == nil && file != nil && file != console.Raw {
			wrote = append(wrote, file.Name())
		}
	}
	if whole {
		return err
	}
	if o.TakesStdout() {
		stdout = notes
	}
	err = errors.Join(err, built.WriteSummary(stdout))
	for _, name := range wrote {
		fmt.Fprintf(notes, "wrote %s\n", name)
	}
	if !o.Reports() {
		fmt.Fprintln(notes, "The whole report: add --out FILE.json, then run llmtop report FILE.json.")
	}
	return err
}
