package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/report"
)

// reportFiles are the files that a report is to go to; none means text on standard output.
type reportFiles struct{ json, csv string }

func (f *reportFiles) bind(set *pflag.FlagSet) {
	set.StringVar(&f.json, "json", "", "write the report as JSON to this file, - for standard output (with --headless)")
	set.StringVar(&f.csv, "csv", "", "write the stages as CSV to this file (with --headless)")
}

func (f *reportFiles) any() bool { return f.json != "" || f.csv != "" }

// outputs are these files, open. They are opened before anything is computed, so that a path that cannot be written costs nothing.
type outputs struct{ json, csv *os.File }

func (f *reportFiles) open() (out outputs, err error) {
	if out.json, err = create(f.json); err != nil {
		return out, err
	}
	out.csv, err = create(f.csv)
	return out, err
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
	for _, file := range []*os.File{out.json, out.csv} {
		if file != nil && file != os.Stdout {
			_ = file.Close()
			_ = os.Remove(file.Name()) // an empty file that stays does no harm
		}
	}
}

func (out outputs) write(r *report.Report, stdout io.Writer) error {
	if out.json == nil && out.csv == nil {
		return r.WriteText(stdout)
	}
	if err := write(out.json, r.WriteJSON); err != nil {
		return err
	}
	return write(out.csv, r.WriteCSV)
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
