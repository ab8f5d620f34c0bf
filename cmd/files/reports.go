package files

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/profiler/report"
)

// Printed says what Write prints.
type Printed struct {
	Stdout io.Writer // receives the text of a report
	Notes  io.Writer // receives the names of the files, and the summary if Stdout is one of them
	Full   bool      // print the whole report, or nothing if there are files; otherwise print a summary
}

// Write writes the report that build returns. It opens the files first, so that an unusable path fails before the run,
// and discards them if build returns no report. An error of build does not keep the report from being written.
func (o *Out) Write(to Printed, build func() (*report.Report, error)) error {
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
	return errors.Join(err, o.writeAll(outputs, built, to))
}

// writeAll writes the files first: nobody may be reading the summary any more.
func (o *Out) writeAll(outputs []*os.File, built *report.Report, to Printed) (err error) {
	if !o.Text {
		built.DropText()
	}
	if to.Full && !o.Reports() {
		return built.WriteText(to.Stdout)
	}
	var wrote []string
	for i, file := range outputs {
		failed := WriteOutput(file, func(w io.Writer) error { return o.kinds[i].report(built, w) })
		if err = errors.Join(err, failed); failed == nil && file != nil && file != console.Raw {
			wrote = append(wrote, file.Name())
		}
	}
	if to.Full {
		return err
	}
	if o.TakesStdout() {
		to.Stdout = to.Notes
	}
	err = errors.Join(err, built.WriteSummary(to.Stdout))
	for _, name := range wrote {
		fmt.Fprintf(to.Notes, "wrote %s\n", name)
	}
	if !o.Reports() {
		fmt.Fprintln(to.Notes, "The whole report: add --out FILE.json, then run llmtop report FILE.json.")
	}
	return err
}
