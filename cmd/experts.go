package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/bench"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/placement"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/source/imatrix"
)

func newExpertsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "experts",
		Short: "Plan where the experts of a model belong, and show which are in memory",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exit.Usagef("unknown command %q: use llmtop experts plan, verify or resident", args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newExpertsPlanCommand(), newExpertsVerifyCommand(), newExpertsResidentCommand())
	return c
}

// expertsPlan holds the flags of the experts plan command.
type expertsPlan struct {
	budget        bench.Budget
	target, model string
	engine        string // engine of a recording of several
	batch         int
}

// planTargets are the engines that a plan can be for.
var planTargets = map[string]func(*expertsPlan, *placement.Input, io.Writer) string{
	"llamacpp": planWholeLayers, "ik_llama": planWholeLayers, "ktransformers": planKTransformers, "sglang": planSGLang,
}

const planTargetNames = "llamacpp, ik_llama, ktransformers or sglang"

func newExpertsPlanCommand() *cobra.Command {
	opts := expertsPlan{batch: 1}
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Print the arguments or the file that place experts by their picks",
		Long: `plan reads the picks in FILE, which is a report (.json), a recording (.llmtop) or a file of
llama-imatrix, and prints to stdout what an engine needs to place experts by them: arguments for
llama.cpp and ik_llama.cpp, or a JSON file with the picks for SGLang and ktransformers. To stderr it
prints what that serves, and what the engine cannot do.

The sizes of experts come from --model, or from the model that the report names if it is still
there, else from the sums in the report.`,
		Example: `  llmtop experts plan session.llmtop --budget 8GB --for llamacpp
  llmtop experts plan report.json --budget 25% --for ktransformers > picks.json
  llmtop experts plan imatrix.gguf --model model.gguf --budget 8GB --for ik_llama --batch 8`,
		Args: takes(1, 1, "experts plan needs one report, recording or imatrix file: llmtop experts plan FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
			defer stop()
			return opts.run(ctx, args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	opts.bind(flags)
	flags.StringVar(&opts.target, "for", "", "`ENGINE` to plan for: "+planTargetNames)
	flags.IntVar(&opts.batch, "batch", opts.batch, "`N` tokens per forward pass, which share experts")
	return c
}

// bind adds the flags of plan and verify.
func (o *expertsPlan) bind(flags *pflag.FlagSet) {
	flags.Var(&o.budget, "budget", "`CAPACITY` of the faster device for experts: 25% (of all) or 8GB")
	flags.StringVar(&o.model, "model", "", "model `FILE` (GGUF) with the sizes of the experts")
	playback.BindEngine(flags, &o.engine)
}

func (o *expertsPlan) run(ctx context.Context, name string, stdout, notes io.Writer) error {
	plan := planTargets[o.target]
	switch {
	case o.target == "":
		return exit.Usagef("experts plan needs the engine to plan for: add --for %s", planTargetNames)
	case plan == nil:
		return exit.Usagef("--for %q: must be %s", o.target, planTargetNames)
	case o.budget.Parsed == nil && o.target != "sglang":
		return exit.Usagef("experts plan needs the capacity of the faster device: add --budget 8GB")
	case o.batch < 1:
		return exit.Usagef("--batch %d: must be 1 or more", o.batch)
	}
	in, err := o.input(ctx, name, notes)
	if err != nil {
		return exit.Usage(err)
	}
	_, err = fmt.Fprintln(stdout, plan(o, in, notes))
	return err
}

// input reads the picks and the sizes of the experts.
func (o *expertsPlan) input(ctx context.Context, name string, notes io.Writer) (*placement.Input, error) {
	in, path := &placement.Input{Batch: o.batch}, o.model
	size := 0.0
	if c, err := imatrix.Open(name); err == nil {
		fmt.Fprintf(notes, "%s\n", c.Describe())
		in.Used, in.Counts = c.Experts.Used, slices.Collect(slices.Chunk(c.Experts.Prompt, c.Experts.Experts))
	} else {
		r, err := playback.ReadReport(ctx, name, nil, notes)
		if err != nil {
			return nil, err
		}
		if r, err = playback.SelectEngine(r, o.engine, name); err != nil {
			return nil, err
		}
		if r.Experts == nil || r.Placement == nil || r.Model == nil {
			return nil, fmt.Errorf("%s: no router picks in it", name)
		}
		in.Used, in.Counts, size = r.Experts.Used, r.Experts.Decode.Layers, r.Placement.ExpertBytes.V
		if c := r.ExpertCache; c != nil && c.Decode != nil {
			fmt.Fprintf(notes, "as a cache: %s\n", c.Decode.Summary)
		}
		if r.Experts.Decode.Tokens == 0 {
			in.Counts = r.Experts.Prompt.Layers
			fmt.Fprintln(notes, "picks of prompts: no decoded tokens were counted")
		}
		if path == "" && r.Model.Path != nil {
			if _, err := os.Stat(*r.Model.Path); err == nil {
				path = *r.Model.Path
			}
		}
	}
	if o.model = path; path != "" {
		if err := readSizes(in, path); err != nil {
			return nil, err
		}
	} else {
		in.ExpertBytes = slices.Repeat([]float64{size}, len(in.Counts))
	}
	switch {
	case in.AllBytes() == 0 && o.target != "sglang":
		return nil, fmt.Errorf("%s: the sizes of the experts are not in it: add --model FILE.gguf", name)
	case in.Used == 0 && o.target != "sglang":
		return nil, errors.New("the number of experts per token is unknown: add --model FILE.gguf")
	}
	return in, nil
}

// readSizes reads the size of the experts of each layer from a model.
func readSizes(in *placement.Input, path string) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	m := f.Describe()
	if len(in.Counts) == 0 || m.Experts != len(in.Counts[0]) || m.Layers < len(in.Counts) {
		return fmt.Errorf("%s has %d layers of %d experts, unlike the picks: add --model FILE.gguf with their model", path, m.Layers, m.Experts)
	}
	if in.Used == 0 {
		in.Used = m.ExpertsUsed
	}
	in.ExpertBytes = make([]float64, len(in.Counts))
	for _, t := range f.Tensors {
		layer, rest, _ := strings.Cut(strings.TrimPrefix(t.Name, "blk."), ".")
		if l, err := strconv.Atoi(layer); err == nil && l >= 0 && l < len(in.Counts) && strings.Contains(rest, "_exps.") {
			in.ExpertBytes[l] += float64(t.Bytes) / float64(m.Experts)
		}
	}
	return nil
}

// bytes returns the budget in bytes.
func (o *expertsPlan) bytes(in *placement.Input) float64 {
	if b := o.budget.Parsed; b.Bytes > 0 {
		return b.Bytes
	}
	return o.budget.Parsed.Share * in.AllBytes()
}

// describePlan prints what a plan serves.
func (o *expertsPlan) describePlan(notes io.Writer, kept string, p *placement.Plan) {
	fmt.Fprintf(notes, "%s on the faster device: %s (budget %s), %s of the recorded routing; %s per token from the slower memory (--batch %d)\n",
		kept, metric.Bytes(p.Bytes), o.budget.String(), metric.Percent(p.Served), metric.Bytes(p.SlowBytes), o.batch)
}

// planWholeLayers plans for llama.cpp and ik_llama.cpp.
func planWholeLayers(o *expertsPlan, in *placement.Input, notes io.Writer) string {
	p, best := in.WholeLayers(o.bytes(in)), in.PerExpert(o.bytes(in))
	layers, all := 0, 0
	for l, kept := range p.Kept {
		if len(kept) > 0 {
			layers++
		}
		if slices.Max(in.Counts[l]) > 0 {
			all++
		}
	}
	o.describePlan(notes, fmt.Sprintf("experts of %d of %d layers", layers, all), p)
	fmt.Fprintf(notes, "the experts of a layer are one tensor, so they move together; placed one by one they would serve %s, with %s per token from the slower memory\n",
		metric.Percent(best.Served), metric.Bytes(best.SlowBytes))
	args := in.LlamaArgs(p)
	for i, a := range args {
		if strings.ContainsAny(a, `\|()`) {
			args[i] = "'" + a + "'"
		}
	}
	return strings.Join(args, " ")
}

// planKTransformers plans for SGLang with the kernels of ktransformers.
func planKTransformers(o *expertsPlan, in *placement.Input, notes io.Writer) string {
	p := in.PerExpert(o.bytes(in))
	kept, all := 0, 0
	for l := range p.Kept {
		if kept += len(p.Kept[l]); slices.Max(in.Counts[l]) > 0 {
			all += len(in.Counts[l])
		}
	}
	o.describePlan(notes, fmt.Sprintf("%d of %d experts", kept, all), p)
	fmt.Fprintf(notes, `write this JSON to picks.json, convert it, and start the server with the arguments:
  python3 -c 'import json, torch; d = json.load(open("picks.json")); torch.save({k: torch.tensor(v) for k, v in d.items()}, "picks.pt")'
  --kt-expert-placement-strategy frequency --kt-gpu-experts-ratio %.6f --init-expert-location picks.pt
`, (float64(kept)+0.5)/float64(max(all, 1)))
	return string(in.LogicalCounts())
}

// planSGLang writes the picks for SGLang.
func planSGLang(_ *expertsPlan, in *placement.Input, notes io.Writer) string {
	fmt.Fprintln(notes, "SGLang holds all experts on its GPUs, so a budget does not apply: the picks let it spread the load over ranks")
	fmt.Fprintln(notes, "write this JSON to picks.json and start the server with --init-expert-location picks.json")
	return string(in.LogicalCounts())
}
