package bench

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/host"
)

// price is the value of --price: per machine hour or per kWh; the other is 0.
type price struct{ hour, kwh float64 }

// Set implements pflag.Value.
func (p *price) Set(words string) error {
	number, per, _ := strings.Cut(words, "/")
	v, err := strconv.ParseFloat(number, 64)
	*p = price{}
	switch {
	case err != nil || !(v > 0) || math.IsInf(v, 1):
	case strings.EqualFold(per, "h"):
		p.hour = v
		return nil
	case strings.EqualFold(per, "kWh"):
		p.kwh = v
		return nil
	}
	return errors.New("must be a price above 0 like 2.5/h or 0.3/kWh")
}

// String implements pflag.Value.
func (p *price) String() string {
	switch {
	case p.hour > 0:
		return strconv.FormatFloat(p.hour, 'g', -1, 64) + "/h"
	case p.kwh > 0:
		return strconv.FormatFloat(p.kwh, 'g', -1, 64) + "/kWh"
	}
	return ""
}

// Type implements pflag.Value.
func (p *price) Type() string { return "price" }

// targets returns the targets that requests are checked against: those of --slo, or those of the screen and the
// profiles. The first ones define goodput.
func (o *Benchmark) targets() []report.Targets {
	if o.Command.Flags().Changed("slo") {
		return o.SLO
	}
	own := o.View.Targets
	own.ITL = 0
	return append([]report.Targets{{Name: own.String(), Targets: own}}, report.Profiles...)
}

// Budget is the value of a flag with a capacity for experts.
type Budget struct {
	Parsed *report.Budget // nil: none

	words string
}

// Set implements pflag.Value.
func (b *Budget) Set(words string) (err error) {
	b.words = words
	b.Parsed, err = parseBudget(words)
	return err
}

// String implements pflag.Value.
func (b *Budget) String() string { return b.words }

// Type implements pflag.Value.
func (b *Budget) Type() string { return "room" }

// parseBudget parses a capacity for experts: "25%", "4GB", "512MB".
func parseBudget(words string) (*report.Budget, error) {
	mistake := errors.New("must be a share like 25% or a size like 4GB")
	if percent, ok := strings.CutSuffix(words, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || !(v >= 0 && v <= 100) {
			return nil, mistake
		}
		return &report.Budget{Share: v / 100}, nil
	}
	for _, unit := range []struct {
		name string
		size float64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"GB", 1e9}, {"MB", 1e6}} {
		if number, ok := strings.CutSuffix(words, unit.name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(v > 0) || math.IsInf(v*unit.size, 1) {
				return nil, mistake
			}
			return &report.Budget{Bytes: v * unit.size}, nil
		}
	}
	return nil, mistake
}

// addTo adds economics and expert placement to the report of a benchmark.
func (o *Benchmark) addTo(r *report.Report, spent report.Consumption) {
	spent.Tokens, spent.Hour, spent.KWh = uint64(r.Totals.GeneratedTokens.V), o.price.hour, o.price.kwh
	r.Bench.Economics = report.NewEconomics(spent)
	if o.budget.Parsed != nil {
		r.Placement = r.Place(o.budget.Parsed)
	}
}

// measureEnergy runs a benchmark and returns the energy and time it took.
func measureEnergy(run func() error) (report.Consumption, error) {
	energy, began := host.StartEnergy(), time.Now()
	err := run()
	joules, source, missing := energy.Stop()
	return report.Consumption{Source: source, Why: missing, Joules: joules, Seconds: time.Since(began).Seconds()}, err
}
