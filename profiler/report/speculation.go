package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// Speculation is what speculative decoding costs and brings.
type Speculation struct {
	Passes     uint64            `json:"passes"`           // that verified drafts
	Drafted    []uint64          `json:"drafted_tokens"`   // by position in the draft
	Accepted   []uint64          `json:"accepted_tokens"`  // by position in the draft
	Share      event.Reading     `json:"accepted_share"`   // of the drafted tokens
	PerPass    event.Reading     `json:"tokens_per_pass"`  // that a request gets of a pass with drafts
	DraftTime  event.Reading     `json:"draft_time_s"`     // in which drafts were computed
	VerifyTime event.Reading     `json:"verify_time_s"`    // of the passes that verified them
	DraftShare event.Reading     `json:"draft_time_share"` // of the time of drafts and of the passes that verify them
	Gain       event.Reading     `json:"gain_ratio"`       // speed with drafts / without
	Compared   string            `json:"compared_with"`    // what the gain is measured against, or what it lacks
	Modelled   bool              `json:"gain_modelled"`
	Absent     map[string]string `json:"absent,omitempty"`
}

// speculation converts what drafts cost and bring; nil if there are none.
func speculation(from *event.Speculation) *Speculation {
	if from == nil {
		return nil
	}
	p := metric.ProfitOf(from)
	out := &Speculation{
		Passes: p.Passes, Drafted: append([]uint64{}, from.Drafted...), Accepted: append([]uint64{}, from.Accepted...),
		Share: p.Accepted, PerPass: p.PerPass, DraftTime: nanos(from.DraftTime), VerifyTime: nanos(p.Verify), DraftShare: p.DraftShare,
		Gain: p.Gain, Compared: p.Missing, Modelled: p.Gain.OK() && p.Plain == 0,
	}
	if p.Gain.OK() {
		out.Compared = verdict.Compared(&p)
	}
	explainNumbers(out)
	return out
}

// speculationSection returns a table of the positions in a draft.
func speculationSection(r *Report) section {
	s := section{title: "Speculation", header: []string{"position", "drafted", "accepted", "share"}}
	x := r.Speculation
	if x == nil {
		return s
	}
	for i, n := range x.Drafted {
		s.rows = append(s.rows, []string{
			fmt.Sprint(i + 1), metric.Count(float64(n)), metric.Count(float64(x.Accepted[i])), metric.Percent(metric.Share(float64(x.Accepted[i]), float64(n))),
		})
	}
	gain := "Gain: unknown: " + x.Compared + "."
	if x.Gain.OK() {
		gain = fmt.Sprintf("Gain: %sx the speed of %s.", format(x.Gain, metric.Rate), x.Compared)
	}
	s.words = []string{
		fmt.Sprintf("%s passes with drafts: %s tokens per pass and request, %s of the drafted tokens accepted. The passes took %s, the drafts %s.",
			metric.Count(float64(x.Passes)), format(x.PerPass, metric.Rate), format(x.Share, metric.Percent), format(x.VerifyTime, metric.Seconds), format(x.DraftTime, metric.Seconds)),
		gain,
	}
	return s
}
