package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui"
)

// compareOptions are what the compare command is told.
type compareOptions struct {
	runs           []string
	repeats        int
	threshold      string
	practical      map[string]string
	gates          []string
	seed           uint64
	json, markdown string
	different      bool
	ui, ascii      bool
	theme          string
}

func newCompareCommand() *cobra.Command {
	var opts compareOptions
	c := &cobra.Command{
		Use:   "compare BASE NEW",
		Short: "Tell whether one run is worse than another, for a script to act on",
		Long: `compare holds reports (--json of any command) or recordings against each other: for each metric the difference with its 95 %
interval, beside what runs of one side differ by among themselves. A side may be several files, parted by commas; each is a run.

With --run twice instead, it runs llmtop with those arguments itself, in turns, so that what drifts on the machine meets both.

It exits with 0 if the new side is no worse, 1 if it has regressed, 2 if the data cannot tell, and 64 if it could not compare.`,
		Example: `  llmtop compare before.json after.json
  llmtop compare --run 'run --headless --threads 1' --run 'run --headless --threads 2' --allow-different`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return notCompared(opts.run(c, args)) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&opts.runs, "run", nil, "arguments of llmtop to measure; twice: base and new")
	flags.IntVar(&opts.repeats, "repeats", 10, "runs of each side (with --run)")
	flags.StringVar(&opts.threshold, "threshold", "3%", "relative difference that does not matter")
	flags.StringToStringVar(&opts.practical, "practical", nil, "difference of a metric that does not matter, for example ttft=5ms,tpot=10us")
	flags.StringSliceVar(&opts.gates, "gate", nil, "metrics that decide, of "+strings.Join(metricNames(), ", ")+" (default ttft,tpot,e2el)")
	flags.Uint64Var(&opts.seed, "seed", 1, "seed of the resampling: same data, same intervals")
	flags.StringVar(&opts.json, "json", "", "write the result as JSON to this file, - for standard output")
	flags.StringVar(&opts.markdown, "markdown", "", "write it as a Markdown comment to this file, - for standard output")
	flags.BoolVar(&opts.different, "allow-different", false, "compare two models, settings or machines")
	flags.BoolVar(&opts.ui, "ui", false, "show the comparison on the screen")
	flags.StringVar(&opts.theme, "theme", theme.Names()[0], "one of "+strings.Join(theme.Names(), ", ")+" (with --ui)")
	flags.BoolVar(&opts.ascii, "ascii", false, "draw with ASCII characters only (with --ui)")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return outcomeError{exitNotCompared, err} })
	return c
}

func metricNames() []string {
	var names []string
	for _, m := range compare.Metrics {
		names = append(names, m.Name)
	}
	return names
}

// notCompared gives errors that are no outcome the code of a comparison that could not be made.
func notCompared(err error) error {
	var outcome outcomeError
	if err == nil || errors.As(err, &outcome) {
		return err
	}
	return outcomeError{exitNotCompared, err}
}

func (o *compareOptions) run(c *cobra.Command, args []string) error {
	options, err := o.options()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(c.Context(), errInterrupted)
	defer stop()
	var base, next *compare.Side
	switch {
	case len(o.runs) == 0 && len(args) == 2:
		if base, err = readSide(ctx, args[0], c.ErrOrStderr()); err == nil {
			next, err = readSide(ctx, args[1], c.ErrOrStderr())
		}
	case len(o.runs) == 2 && len(args) == 0:
		base, next, err = o.measure(ctx, c.ErrOrStderr())
	default:
		err = errors.New("compare takes two reports, BASE and NEW, or --run twice")
	}
	if err != nil {
		return err
	}
	result := compare.Sides(base, next, options)
	if len(result.Differences) > 0 && !o.different {
		return fmt.Errorf("the two differ in %s; to compare them on purpose: --allow-different", describe(result.Differences))
	}
	if err := o.tell(ctx, result, c.OutOrStdout()); err != nil {
		return err
	}
	switch result.Outcome {
	case compare.NoWorse:
		return nil
	case compare.Regressed:
		return outcomeError{code: 1}
	}
	return outcomeError{code: 2}
}

func describe(d []compare.Difference) string {
	words := make([]string, len(d))
	for i := range d {
		words[i] = d[i].String()
	}
	return strings.Join(words, "; ")
}

func (o *compareOptions) options() (compare.Options, error) {
	out := compare.Options{Seed: o.seed, Interleaved: len(o.runs) > 0, Gates: o.gates, Practical: map[string]float64{}}
	percent, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(o.threshold, "%")), 64)
	if err != nil || !(percent >= 0 && percent <= 1000) {
		return out, fmt.Errorf("--threshold %q: must be a percentage, for example 3%%", o.threshold)
	}
	out.Relative = percent / 100
	if _, ok := theme.ByName(o.theme); !ok {
		return out, fmt.Errorf("--theme %q: must be one of %s", o.theme, strings.Join(theme.Names(), ", "))
	}
	if o.ui && (!isTerminal(os.Stdout) || !isTerminal(os.Stdin)) {
		return out, errors.New("--ui needs a terminal")
	}
	if o.repeats < 1 || o.repeats > 1000 {
		return out, fmt.Errorf("--repeats %d: must be 1 to 1000", o.repeats)
	}
	for _, name := range slices.Concat(o.gates, slices.Sorted(maps.Keys(o.practical))) {
		if !slices.Contains(metricNames(), name) {
			return out, fmt.Errorf("there is no metric %q: there are %s", name, strings.Join(metricNames(), ", "))
		}
	}
	for name, words := range o.practical {
		if out.Practical[name], err = amount(words); err != nil {
			return out, fmt.Errorf("--practical %s=%s: must be a time or a number of 0 or more", name, words)
		}
	}
	return out, nil
}

// amount reads a time, in s, or a plain number.
func amount(words string) (float64, error) {
	v, err := strconv.ParseFloat(words, 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(words)
		v = d.Seconds()
	}
	if err == nil && !(v >= 0 && v < 1e12) {
		err = errors.New("out of range")
	}
	return v, err
}

// readSide reads the files of one side: reports or recordings.
func readSide(ctx context.Context, names string, notes io.Writer) (*compare.Side, error) {
	var reports []*report.Report
	for name := range strings.SplitSeq(names, ",") {
		r, err := readReport(ctx, name, notes)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return compare.NewSide(names, reports...)
}

func readReport(ctx context.Context, name string, notes io.Writer) (*report.Report, error) {
	rec, err := trace.Open(name)
	switch {
	case err == nil:
		defer rec.Close() // read only
		return reportOf(ctx, rec, name, &view{targets: store.Targets{TTFT: defaultTTFTTarget}})
	case !errors.Is(err, trace.ErrNotRecording):
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := report.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if r.Partial {
		fmt.Fprintf(notes, "%s is of a run that was interrupted\n", name)
	}
	return r, nil
}

// tell shows the result, if that is wanted, and writes it.
func (o *compareOptions) tell(ctx context.Context, r *compare.Result, stdout io.Writer) error {
	if o.ui {
		err := ui.RunComparison(ctx, r, ui.Config{
			Theme: o.theme, Profile: theme.Detect(os.Stdout, os.Environ()), ASCII: o.ascii || theme.PlainFont(os.Environ()),
		})
		if err != nil {
			return err
		}
		if o.json == "" && o.markdown == "" {
			return nil // it has been seen
		}
	}
	return o.write(r, stdout)
}

// write writes the result: to the files that were named, or else as text.
func (o *compareOptions) write(r *compare.Result, stdout io.Writer) error {
	if o.json == "" && o.markdown == "" {
		return r.WriteText(stdout)
	}
	for name, to := range map[string]func(io.Writer) error{o.json: r.WriteJSON, o.markdown: r.WriteMarkdown} {
		file, err := create(name)
		if err != nil {
			return err
		}
		if err := write(file, to); err != nil {
			return err
		}
	}
	return nil
}
