package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/shell"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/report"
)

// measure runs both sides in turns; the side that goes first alternates.
func (o *compareOptions) measure(ctx context.Context, progress io.Writer) (base, next *compare.Side, err error) {
	folder, err := os.MkdirTemp("", "llmtop-compare-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	var args [2][]string
	for side, line := range o.runs {
		if args[side], err = shell.Fields(line, nil); err != nil || len(args[side]) == 0 {
			return nil, nil, fmt.Errorf("--run %q: must be llmtop arguments, for example 'run --headless'", line)
		}
	}
	var reports [2][]*report.Report
	for turn := range o.repeats {
		for i := range 2 {
			side := (turn + i) % 2
			fmt.Fprintf(progress, "run %d of %d: %s\n", 2*turn+i+1, 2*o.repeats, o.runs[side])
			r, err := runReport(ctx, args[side], filepath.Join(folder, "report.json"))
			if err != nil {
				return nil, nil, fmt.Errorf("--run %q: %w", o.runs[side], err)
			}
			reports[side] = append(reports[side], r)
		}
	}
	if base, err = compare.NewSide(o.runs[0], reports[0]...); err != nil {
		return nil, nil, err
	}
	next, err = compare.NewSide(o.runs[1], reports[1]...)
	return base, next, err
}

// runReport runs this program with arguments and returns its report.
func runReport(ctx context.Context, args []string, path string) (*report.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, self, append(args, "--json", path)...)
	c.Args[0] = os.Args[0]
	c.Stderr = &stderr
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return report.Read(file)
}
