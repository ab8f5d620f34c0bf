package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// benchColumns are the columns of a benchmark's CSV.
var benchColumns = []string{"point", "metric", "samples", "sum", "mean", "mean_low", "mean_high", "stddev", "min", "p50", "p90", "p95", "p99", "max", "too_few"}

// writeBenchCSV writes a row per number and point, with the units and names of the JSON document; then, without a
// point, the numbers of the whole benchmark. Absent numbers are empty.
func writeBenchCSV(r *Report, w io.Writer) error {
	c := csv.NewWriter(w)
	_ = c.Write(benchColumns) // the first error sticks
	scalar := func(point, name, column, value string) {
		row := make([]string, len(benchColumns))
		row[0], row[1] = point, name
		for i, title := range benchColumns {
			if title == column {
				row[i] = value
			}
		}
		_ = c.Write(row)
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		name := textCell(p.Name)
		for _, count := range []struct {
			name string
			n    uint64
		}{
			{"finished", uint64(p.Tokens.Requests)},
			{"prompt_tokens", p.Tokens.Prompt},
			{"padding_tokens", p.Tokens.Padding},
			{"generated_tokens", p.Tokens.Generated},
		} {
			scalar(name, count.name, "sum", strconv.FormatUint(count.n, 10))
		}
		scalar(name, "cached_tokens", "sum", decimal(p.Tokens.Cached))
		for _, d := range distributions {
			if s := *d.field(p); s != nil {
				_ = c.Write(s.row(name, d.json))
			}
		}
		for _, g := range p.Groups {
			if g.TPS != nil {
				_ = c.Write(g.TPS.row(name, textCell("tps of "+g.Name)))
			}
		}
		for _, part := range p.Parts {
			scalar(name, textCell("ttft_components_s "+part.Name), "mean", decimal(part.Time))
		}
		for _, f := range p.Profiles {
			scalar(name, textCell("all_share of "+f.Targets), "mean", decimal(f.Compliance.All))
		}
		for _, n := range []named{
			{"decode_bytes_per_s", p.Bandwidth},
			{"decode_read_share", p.ReadShare},
			{"decode_weights_share", p.WeightsShare},
			{"prefill_flop_per_s", p.Compute},
			{"prefill_compute_share", p.ComputeShare},
		} {
			scalar(name, n.Name, "mean", decimal(n.N))
		}
	}
	for _, n := range benchTotals(r) {
		scalar("", n.Name, "mean", decimal(n.N))
	}
	c.Flush()
	return c.Error()
}

// benchTotals returns the numbers of the whole benchmark.
func benchTotals(r *Report) []named {
	out := slices.Clone(r.Host.RunUsage.Machine.list)
	for _, o := range r.Host.RunUsage.Engine.list {
		out = append(out, named{"engine." + o.Name, o.N})
	}
	if e := r.Bench.Economics; e != nil {
		out = append(out, named{"energy_j", e.Energy}, named{"energy_per_token_j", e.PerToken}, named{"cost_per_million_tokens", e.Cost})
	}
	if p := r.Placement; p != nil && p.Chosen != nil {
		out = append(out, named{"placement.coverage_share", p.Chosen.Coverage})
	}
	return out
}

// row returns the statistics in the order of benchColumns.
func (s *Statistics) row(point, name string) []string {
	row := []string{point, name, strconv.Itoa(s.Count), ""}
	for _, n := range []event.Reading{s.Mean, s.Low, s.High, s.StdDev, s.Min, s.P50, s.P90, s.P95, s.P99, s.Max} {
		row = append(row, decimal(n))
	}
	return append(row, textCell(strings.Join(s.TooFew, " ")))
}

// decimal formats a number with all its digits, "" if it is absent.
func decimal(n event.Reading) string {
	if !n.OK() {
		return ""
	}
	return strconv.FormatFloat(n.V, 'g', -1, 64)
}
