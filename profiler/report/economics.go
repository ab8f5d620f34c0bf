package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Economics is the energy and the cost of a benchmark, per token.
type Economics struct {
	EnergySource *string           `json:"energy_source"`    // null: no readable source
	NoSource     *string           `json:"no_energy_source"` // reason if there is none
	Energy       event.Reading     `json:"energy_j"`         // from the first request to the last
	PerToken     event.Reading     `json:"energy_per_token_j"`
	Price        *string           `json:"price"` // as given by the user
	Cost         event.Reading     `json:"cost_per_million_tokens"`
	Seconds      event.Reading     `json:"duration_s"`
	Tokens       uint64            `json:"generated_tokens"`
	Absent       map[string]string `json:"absent,omitempty"`
}

// Consumption is the input of Economics: the joules that a source has counted over Seconds (no source: "", with the
// reason in Why), and a price per hour, per kWh, or neither.
type Consumption struct {
	Source  string
	Why     string
	Joules  float64
	Seconds float64
	Tokens  uint64
	Hour    float64
	KWh     float64
}

// NewEconomics divides the consumption by the tokens. A price per kWh needs a source of energy.
func NewEconomics(s Consumption) *Economics {
	e := &Economics{EnergySource: optionalText(s.Source), Seconds: Measured(s.Seconds), Tokens: s.Tokens}
	tokens := float64(s.Tokens)
	if s.Source == "" {
		e.NoSource = optionalText(s.Why)
	}
	if s.Source != "" {
		e.Energy = event.MeasuredValue(s.Joules)
		if tokens > 0 {
			e.PerToken = Measured(s.Joules / tokens)
		}
	}
	switch {
	case s.Hour > 0:
		e.Price = optionalText(fmt.Sprintf("%g per hour", s.Hour))
		if tokens > 0 {
			e.Cost = Measured(s.Hour * s.Seconds / 3600 / tokens * 1e6)
		}
	case s.KWh > 0:
		e.Price = optionalText(fmt.Sprintf("%g per kWh", s.KWh))
		if e.PerToken.OK() {
			e.Cost = Measured(e.PerToken.V / 3.6e6 * s.KWh * 1e6)
		}
	}
	explainNumbers(e)
	return e
}

func economicsSection(r *Report) section {
	s := section{title: "Energy and cost", left: 1, header: []string{"", ""}}
	if r.Bench == nil || r.Bench.Economics == nil {
		return s
	}
	e := r.Bench.Economics
	energy := "no source"
	if e.NoSource != nil {
		energy += " (" + *e.NoSource + ")"
	}
	if e.EnergySource != nil {
		energy = fmt.Sprintf("%s J, %s J per token (%s)", format(e.Energy, metric.Rate), format(e.PerToken, metric.Rate), *e.EnergySource)
	}
	s.rows = append(s.rows, []string{"energy", energy})
	if e.Price != nil {
		cost := "no source of energy"
		if e.Cost.OK() {
			cost = fmt.Sprintf("%.4g per million generated tokens", e.Cost.V)
		}
		s.rows = append(s.rows, []string{"cost at " + *e.Price, cost})
	}
	return s
}
