package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// CacheMiss is what a prompt cache could have kept of a prompt and did not.
type CacheMiss struct {
	Why    string          `json:"why"` // name of an event.BreakKind; "none": the text is the same, and was not reused
	Text   string          `json:"text"`
	Place  string          `json:"place,omitempty"`     // in the request
	At     *int            `json:"character,omitempty"` // of the place, from 0
	Token  *int            `json:"token,omitempty"`     // of the place, from 0, if the text is unknown
	With   event.RequestID `json:"earlier_request"`
	Tokens int             `json:"tokens"` // computed again, about
	Lost   event.Reading   `json:"lost_s"`
}

func cacheMiss(f *store.Request) *CacheMiss {
	m := f.CacheMiss()
	if m.Tokens == 0 {
		return nil
	}
	out := &CacheMiss{Why: m.Kind.String(), Text: m.Words(), Place: m.Place, With: m.With, Tokens: m.Tokens}
	switch {
	case m.Kind == event.BreakTokens:
		out.Token = &m.At
	case m.Place != "":
		out.At = &m.At
	}
	if m.Lost > 0 {
		out.Lost = nanos(int64(m.Lost))
	}
	return out
}

// missesSection sums up by kind what prompt caches could have kept.
func missesSection(r *Report) section {
	s := section{title: "Prompt cache misses", left: 2, header: []string{"why", "for example", "requests", "tokens", "lost", "of prefill"}}
	type kind struct {
		*CacheMiss       // the costliest
		example          string
		requests, tokens int
		lost             float64
	}
	var kinds []kind
	prefill := 0.0
	for i := range r.Requests {
		q := &r.Requests[i]
		for _, p := range q.Parts {
			if p.Name == event.StagePrompt.String() {
				prefill += p.Time.V
			}
		}
		m := q.Miss
		if m == nil {
			continue
		}
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.Why == m.Why })
		if at < 0 {
			kinds, at = append(kinds, kind{CacheMiss: m}), len(kinds)
		}
		k := &kinds[at]
		if k.example == "" || m.Lost.V > k.Lost.V {
			k.CacheMiss, k.example = m, fmt.Sprintf("#%d, from #%d", q.ID, m.With)
			switch {
			case m.At != nil:
				k.example += fmt.Sprintf(": %s, character %d", m.Place, *m.At)
			case m.Token != nil:
				k.example += fmt.Sprintf(": %s, token %d", m.Place, *m.Token)
			}
		}
		k.requests, k.tokens, k.lost = k.requests+1, k.tokens+m.Tokens, k.lost+m.Lost.V
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(b.tokens, a.tokens)) })
	for _, k := range kinds {
		lost, share := "-", "-"
		if k.lost > 0 {
			lost, share = metric.Seconds(k.lost), metric.Percent(metric.Share(k.lost, prefill))
		}
		s.rows = append(s.rows, []string{k.Text, k.example, fmt.Sprint(k.requests), fmt.Sprint(k.tokens), lost, share})
	}
	return s
}
