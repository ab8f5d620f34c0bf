package cmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/shell"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/profiler/report"
)

// compareOptions are the flags of the compare command.
type compareOptions struct {
	runs      []string
	repeats   int
	threshold []string
	gates     []string
	out       *files.Out
	different bool
}

func newCompareCommand() *cobra.Command {
	var opts compareOptions
	c := &cobra.Command{
		Use:   "compare BASE NEW",
		Short: "Check whether one run is worse than another, for scripts",
		Long: `compare compares reports (.json) or recordings (.llmtop): for each metric it shows the
difference with its 95 % confidence interval, and whether it is better, worse, no worse or
inconclusive. A side may be several files, separated by commas; each is a run. One run per side is
inconclusive.

With two --run it runs llmtop with those arguments itself, in turns, so that drift of the machine
affects both sides. Files of runs in turns are recognised by their times.

Exit codes: 0 better or no worse, 1 worse, 2 inconclusive, 64 not compared.`,
		Example: `  llmtop compare before.json after.json
  llmtop compare --allow-different --run 'run --headless --threads 1' \
    --run 'run --headless --threads 2'`,
		Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(c *cobra.Command, args []string) error {
			return compareError(files.CheckOutputs(c.Flags(), args))
		},
		RunE: func(c *cobra.Command, args []string) error { return compareError(opts.run(c, args)) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&opts.runs, "run", nil, "llmtop `ARGUMENTS` to run and measure; give twice: base and new")
	flags.IntVar(&opts.repeats, "repeats", 10, "runs of each side (with --run)")
	flags.StringSliceVar(&opts.threshold, "threshold", []string{fmt.Sprint(defaultThreshold, "%")}, "practically irrelevant `DIFFERENCES`: relative, or per metric like ttft=5ms,tpot=10us")
	flags.StringSliceVar(&opts.gates, "gate", nil, "`METRICS` that decide: "+strings.Join(metricNames(), ", ")+" (default ttft,tpot,e2el)")
	opts.out = files.BindOut(flags, files.JSON, files.Markdown)
	flags.BoolVar(&opts.different, "allow-different", false, "allow different models, settings or machines")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return exit.Outcome(exit.CodeNotCompared, exit.FlagError(err))
	})
	return c
}

func metricNames() []string {
	var names []string
	for _, m := range compare.Metrics {
		names = append(names, m.Name)
	}
	return names
}

// compareError gives errors other than outcomes the exit code exit.CodeNotCompared, and an interruption its own.
func compareError(err error) error {
	switch {
	case err == nil || exit.IsOutcome(err):
		return err
	case errors.Is(err, exit.ErrInterrupted):
		return exit.Outcome(exit.CodeInterrupted, errors.New("interrupted: nothing was compared"))
	}
	return exit.Outcome(exit.CodeNotCompared, err)
}

func (o *compareOptions) run(c *cobra.Command, args []string) error {
	options, err := o.options()
	if err != nil {
		return err
	}
	outputs, err := o.open()
	if err != nil {
		return err
	}
	result, err := o.compare(c, args, options)
	if err != nil {
		files.Discard(outputs)
		return err
	}
	if err := o.write(result, outputs, c.OutOrStdout()); err != nil {
		return err
	}
	switch result.Outcome {
	case compare.NoWorse, compare.Better:
		return nil
	case compare.Worse:
		return exit.Outcome(1, nil)
	}
	return exit.Outcome(2, nil)
}

// compare reads or measures both sides and compares them.
func (o *compareOptions) compare(c *cobra.Command, args []string, options compare.Options) (result *compare.Result, err error) {
	ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
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
		err = errors.New("compare needs two reports: llmtop compare BASE NEW, or --run twice")
	}
	if err != nil {
		return nil, err
	}
	result = compare.Sides(base, next, options)
	if len(result.Differences) > 0 && !o.different {
		return nil, fmt.Errorf("the runs differ in %s: to compare them anyway use --allow-different", describe(result.Differences))
	}
	if turns, ok := result.NeedsRuns(); ok {
		result.Notes = append(result.Notes, o.advice(c, base, next, turns, len(result.Differences) > 0))
	} else if gates, others, onlyCold := result.NoData(); len(gates) > 0 {
		result.Notes = append(result.Notes, noDataAdvice(gates, others, onlyCold))
	}
	return result, nil
}

// advice returns the commands that can decide an inconclusive comparison with that many turns, 0 if the runs were not in
// turns. --run runs this program: it cannot compare two builds, which have the same command.
func (o *compareOptions) advice(c *cobra.Command, base, next *compare.Side, turns int, different bool) string {
	advised := max(advisedTurns, 4*turns)
	if len(o.runs) > 0 {
		return fmt.Sprintf("to decide, measure more turns (--repeats %d) or more requests per run", advised)
	}
	if base.Command == next.Command {
		command := cmp.Or(base.Command, "bench ENGINE")
		return fmt.Sprintf("to decide, measure both sides in turns, %d times each, and compare all files: "+
			"llmtop %s --out base-1.json; llmtop %s --out new-1.json; …", advised, command, command)
	}
	words := []string{"to decide, measure both in turns: llmtop compare --repeats", strconv.Itoa(advised)}
	if different {
		words = append(words, "--allow-different")
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains([]string{"gate", "threshold"}, f.Name) {
			words = append(words, local.FlagWords(f)...)
		}
	})
	for _, side := range []*compare.Side{base, next} {
		words = append(words, "--run", local.Quote(cmp.Or(side.Command, "bench ENGINE")))
	}
	return strings.Join(words, " ")
}

// noDataAdvice says what can decide a comparison whose gates lack data, which more runs of the same requests do not have.
func noDataAdvice(gates, others []string, onlyCold bool) string {
	words := "more runs cannot decide, without data of " + strings.Join(gates, " and ") + ": "
	if onlyCold {
		words += "measure several requests per run (only the first is cold), or "
	}
	words += "choose other gates with --gate"
	if len(others) > 0 {
		words += " " + strings.Join(others, ",")
	}
	return words
}

// defaultThreshold is the practically irrelevant relative difference, in percent.
const defaultThreshold = 3

// advisedTurns is the number of turns that finds a slowdown of 5 % on a quiet machine.
const advisedTurns = 10

func describe(d []compare.Difference) string {
	words := make([]string, len(d))
	for i := range d {
		words[i] = d[i].String()
	}
	return strings.Join(words, "; ")
}

func (o *compareOptions) options() (compare.Options, error) {
	out := compare.Options{Gates: o.gates, Practical: map[string]float64{}, Relative: defaultThreshold / 100.}
	for _, words := range o.threshold {
		name, amount, metric := strings.Cut(words, "=")
		var err error
		if metric {
			out.Practical[name], err = parseAmount(amount)
		} else {
			out.Relative, err = parseAmount(strings.TrimSpace(strings.TrimSuffix(words, "%")))
			out.Relative /= 100
		}
		if err != nil || out.Relative > 10 {
			return out, fmt.Errorf("--threshold %q: must be a percentage like %d%%, or a duration or number per metric like ttft=5ms", words, defaultThreshold)
		}
	}
	if o.repeats < 1 || o.repeats > 1000 {
		return out, fmt.Errorf("--repeats %d: must be 1 to 1000", o.repeats)
	}
	for _, name := range slices.Concat(o.gates, slices.Sorted(maps.Keys(out.Practical))) {
		if !slices.Contains(metricNames(), name) {
			return out, fmt.Errorf("unknown metric %q: use one of %s", name, strings.Join(metricNames(), ", "))
		}
	}
	return out, nil
}

// parseAmount parses a duration, returned in s, or a plain number.
func parseAmount(words string) (float64, error) {
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
		r, err := playback.ReadReport(ctx, name, nil, notes)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return compare.NewSide(names, reports...)
}

// open opens the files of --out, so that an unusable path fails before the runs.
func (o *compareOptions) open() (outputs []*os.File, err error) {
	outputs = make([]*os.File, 2)
	for i, ending := range []string{files.JSON, files.Markdown} {
		if outputs[i], err = files.OpenOutput(o.out.Name(ending), false); err != nil {
			files.Discard(outputs)
			return nil, err
		}
	}
	return outputs, nil
}

// write writes the result to the files of open, or as text.
func (o *compareOptions) write(r *compare.Result, outputs []*os.File, stdout io.Writer) error {
	if outputs[0] == nil && outputs[1] == nil {
		return r.WriteText(stdout)
	}
	return errors.Join(files.WriteOutput(outputs[0], r.WriteJSON), files.WriteOutput(outputs[1], r.WriteMarkdown))
}

// measure runs both sides in turns.
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
	for turn, first := range compare.Order(o.repeats, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))) {
		for i := range 2 {
			side := (first + i) % 2
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
	c := exec.CommandContext(ctx, self, append(args, "--out", path)...)
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
