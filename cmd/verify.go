package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/placement"
)

// expertsVerify holds the flags of the experts verify command.
type expertsVerify struct {
	expertsPlan
	program       string // llama-bench
	turns, tokens int
	threads       int
}

func newExpertsVerifyCommand() *cobra.Command {
	opts := expertsVerify{expertsPlan: expertsPlan{target: "llamacpp", batch: 1}, program: "llama-bench", turns: 5, tokens: 64}
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Run llama.cpp with and without a plan, and show what it gains",
		Long: `verify plans like llmtop experts plan --for llamacpp, and then runs llama.cpp's llama-bench in
turns: with all experts in the slower memory, and with those of the plan on the faster device. It
prints the speed of decoding of one request, and the gain with its range over the turns.`,
		Example: `  llmtop experts verify session.llmtop --budget 8GB
  llmtop experts verify report.json --budget 25% --llama-bench ~/llama.cpp/build/bin/llama-bench`,
		Args: takes(1, 1, "experts verify needs one report, recording or imatrix file: llmtop experts verify FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
			defer stop()
			return opts.run(ctx, args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	opts.bind(flags)
	flags.StringVar(&opts.program, "llama-bench", opts.program, "`PROGRAM` to run")
	flags.IntVar(&opts.turns, "repeats", opts.turns, "`N` runs of each")
	flags.IntVarP(&opts.tokens, "tokens", "n", opts.tokens, "generate `N` tokens in each run")
	flags.IntVar(&opts.threads, "threads", 0, "`N` threads of llama.cpp; 0: one per core")
	return c
}

func (o *expertsVerify) run(ctx context.Context, name string, out, notes io.Writer) error {
	if err := local.CheckThreads(o.threads); err != nil {
		return err
	}
	switch {
	case o.budget.Parsed == nil:
		return exit.Usagef("experts verify needs the capacity of the faster device: add --budget 8GB")
	case o.turns < 1 || o.tokens < 1:
		return exit.Usagef("--repeats %d, --tokens %d: must be 1 or more", o.turns, o.tokens)
	}
	if o.threads == 0 {
		o.threads = runtime.GOMAXPROCS(0)
	}
	program, err := exec.LookPath(o.program)
	if err != nil {
		return exit.Usagef("find llama-bench: %w: name it with --llama-bench PROGRAM", err)
	}
	in, err := o.input(ctx, name, notes)
	if err != nil {
		return exit.Usage(err)
	}
	if o.model == "" {
		return exit.Usagef("%s does not name a model that is still there: add --model FILE.gguf", name)
	}
	t, err := o.try(ctx, program, in, notes)
	if err != nil {
		return err
	}
	return t.print(out)
}

// trial is what llama-bench measured in turns: with all experts in the slower memory, and with those of the plan on the device.
type trial struct {
	device string // which is faster; "": llama.cpp has none, so that the plan moves nothing
	sides  [2]struct {
		args      []string
		slowBytes float64   // of experts that a token reads from the slower memory, by the plan
		speeds    []float64 // tokens/s of one request, one per turn
	}
}

// try runs llama-bench in turns without and with the plan.
func (o *expertsVerify) try(ctx context.Context, program string, in *placement.Input, notes io.Writer) (*trial, error) {
	devices, err := output(ctx, program, "--list-devices")
	if err != nil {
		return nil, err
	}
	t := &trial{device: firstDevice(devices)}
	for i, capacity := range [2]float64{0, o.bytes(in)} {
		plan := in.WholeLayers(capacity)
		t.sides[i].args, t.sides[i].slowBytes = in.LlamaArgs(plan), plan.SlowBytes
	}
	for turn := range o.turns {
		fmt.Fprintf(notes, "turn %d of %d\n", turn+1, o.turns)
		for i := range 2 {
			side := (turn + i) % 2 // each goes first in every second turn
			raw, err := output(ctx, program, append([]string{
				"-m", o.model, "-p", "0", "-n", strconv.Itoa(o.tokens), "-r", "1", "-t", strconv.Itoa(o.threads), "-o", "json",
			}, t.sides[side].args...)...)
			if err != nil {
				return nil, err
			}
			speed, err := benchSpeed(raw)
			if err != nil {
				return nil, fmt.Errorf("read answer of %s: %w", program, err)
			}
			t.sides[side].speeds = append(t.sides[side].speeds, speed)
		}
	}
	return t, nil
}

// output runs a program and returns what it writes to stdout.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Stderr = &stderr
	raw, err := c.Output()
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("run %s: %w: %s", program, err, clean.Cut(lines[len(lines)-1], clean.MaxMessage))
	}
	return raw, nil
}

// firstDevice returns the first of the devices that llama.cpp lists, "" if it has none.
func firstDevice(list []byte) string {
	_, devices, _ := strings.Cut(string(list), "devices:")
	for line := range strings.Lines(devices) {
		if line = strings.TrimSpace(line); line != "" && line != "(none)" {
			return clean.Name(line)
		}
	}
	return ""
}

// benchSpeed returns the tokens/s of an answer of llama-bench.
func benchSpeed(raw []byte) (float64, error) {
	var tests []struct {
		Speed float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(raw, &tests); err != nil {
		return 0, err
	}
	if len(tests) != 1 || !(tests[0].Speed > 0) || math.IsInf(tests[0].Speed, 0) {
		return 0, errors.New("no speed in it")
	}
	return tests[0].Speed, nil
}

func (t *trial) print(out io.Writer) error {
	fmt.Fprintf(out, "faster device  %s\n", cmp.Or(t.device, "none: all memory is the same"))
	for i, name := range [...]string{"without the plan", "with the plan"} {
		s := &t.sides[i]
		fmt.Fprintf(out, "%-17s %s tokens/s (%s to %s, %s)  %s per token from the slower memory  %s\n", name,
			metric.Rate(metric.Median(s.speeds)), metric.Rate(slices.Min(s.speeds)), metric.Rate(slices.Max(s.speeds)), metric.Plural(len(s.speeds), "turn"), metric.Bytes(s.slowBytes), strings.Join(s.args, " "))
	}
	_, err := fmt.Fprintln(out, gainWords(t.device, t.gains()))
	return err
}

// gains returns how many times as fast each turn was with the plan.
func (t *trial) gains() []float64 {
	gains := make([]float64, len(t.sides[0].speeds))
	for i, without := range t.sides[0].speeds {
		gains[i] = t.sides[1].speeds[i] / without
	}
	return gains
}

// byChance is the difference in speed that turns may show by chance, even if all show it.
const byChance = 0.05

// gainWords says what the turns show: a gain or a loss if all of them agree on it.
func gainWords(device string, gains []float64) string {
	median := metric.Median(gains)
	words := fmt.Sprintf("%s times as fast with the plan (%s to %s)", metric.Rate(median), metric.Rate(slices.Min(gains)), metric.Rate(slices.Max(gains)))
	differs := median < 1-byChance && slices.Max(gains) < 1 || median > 1+byChance && slices.Min(gains) > 1
	switch {
	case device == "" && differs:
		words += ": llama.cpp has no faster device here, but stores the experts of the plan in another form"
	case device == "":
		words += ": llama.cpp has no faster device here, so the plan moves nothing"
	case !differs:
		words += ": no difference that these turns show"
	}
	return words
}
