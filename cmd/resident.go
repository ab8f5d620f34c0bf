package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/playback"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/host"
)

func newExpertsResidentCommand() *cobra.Command {
	var picks, engine string // a report or recording, and the engine of one of several
	c := &cobra.Command{
		Use:   "resident MODEL.gguf",
		Short: "Show which experts of a model file are in the page cache",
		Long: `resident prints, by layer, the share of the experts' bytes that is in the page cache now, whichever
process reads the file. With --picks it names the experts that are hot but not resident: picked more
often than evenly, with less than half of their bytes in memory. Linux only.`,
		Example: `  llmtop experts resident model.gguf
  llmtop experts resident model.gguf --picks session.llmtop`,
		Args: takes(1, 1, "experts resident needs one model file: llmtop experts resident MODEL.gguf"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := exit.WithSignals(c.Context(), exit.ErrInterrupted)
			defer stop()
			return showResident(ctx, args[0], picks, engine, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&picks, "picks", "", "report or recording `FILE` with the picks of the model's router")
	playback.BindEngine(c.Flags(), &engine)
	return c
}

// showResident prints which experts of a model are in memory, and unless picks is "", which hot ones are not.
func showResident(ctx context.Context, name, picks, engine string, out, notes io.Writer) error {
	layers, experts, shares, err := host.CachedExperts(name)
	if err != nil {
		return exit.Usage(err)
	}
	s := store.Empty()
	s.Experts, s.Host.ExpertsCached = &store.Experts{Layers: layers, Experts: experts}, shares
	for l, row := range slices.Collect(slices.Chunk(shares, experts)) {
		if row = slices.DeleteFunc(slices.Clone(row), func(v uint8) bool { return v == event.UnknownShare }); len(row) > 0 {
			sum, none := 0, 0
			for _, v := range row {
				if sum += int(v); v == 0 {
					none++
				}
			}
			fmt.Fprintf(out, "L%-3d %s in memory; no page of %d of %d experts\n", l, metric.Percent(float64(sum)/100/float64(len(row))), none, len(row))
		}
	}
	if picks == "" {
		return nil
	}
	h, err := readPicks(ctx, picks, engine, s.Experts, notes)
	if err != nil {
		return exit.Usage(err)
	}
	describeHot(out, s, h)
	return nil
}

// readPicks reads the picks while decoding.
func readPicks(ctx context.Context, name, engine string, x *store.Experts, notes io.Writer) (*store.Hits, error) {
	r, err := playback.ReadReport(ctx, name, nil, notes)
	if err != nil {
		return nil, err
	}
	if r, err = playback.SelectEngine(r, engine, name); err != nil {
		return nil, err
	}
	if r.Experts == nil || len(r.Experts.Decode.Layers) != x.Layers || r.Experts.Experts != x.Experts {
		return nil, fmt.Errorf("%s: no router picks of %d layers of %d experts in it", name, x.Layers, x.Experts)
	}
	return store.NewHits(slices.Concat(r.Experts.Decode.Layers...), r.Experts.Decode.Tokens, x.Layers, x.Experts), nil
}

// mostNamed is how many experts are named.
const mostNamed = 16

// describeHot names the experts that are hot but not resident.
func describeHot(out io.Writer, s *store.Snapshot, h *store.Hits) {
	hot := store.HotNotResident(s, h)
	fmt.Fprintf(out, "%d hot but not resident", len(hot))
	names := make([]string, min(len(hot), mostNamed))
	for i := range names {
		names[i] = fmt.Sprintf("%d:%d", hot[i]/s.Experts.Experts, hot[i]%s.Experts.Experts)
	}
	if len(names) > 0 {
		fmt.Fprint(out, ": ", strings.Join(names, " "))
	}
	if len(hot) > len(names) {
		fmt.Fprintf(out, " and %d more", len(hot)-len(names))
	}
	if r := store.ResidentPicks(s, h); r.OK() {
		fmt.Fprintf(out, "; %s of the picks find their expert in memory", metric.Percent(r.V))
	}
	fmt.Fprintln(out)
}
