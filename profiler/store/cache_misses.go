package store

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Up to slackTokens, or slackShare of a prompt, may be computed again without a miss: caches keep whole blocks, and always
// compute the last token.
const (
	slackTokens = 32
	slackShare  = 0.1
)

// CacheMiss is what a prefix cache could have kept of a prompt and did not. The zero value is no miss.
type CacheMiss struct {
	Kind   event.BreakKind // BreakNone: the engine did not reuse a text that is the same
	Place  string
	At     int // character of Place, or token
	With   event.RequestID
	Tokens int           // computed again, about: by the share of the text
	Lost   time.Duration // of the prompt's processing; 0: its time is not reported
}

// judge says what was missed of a prompt with tokens, cached of which came from the cache; prefill is how long the others
// took, 0 if unknown. The text is the same as an earlier one up to a break, and partly after it: if the engine reused less
// than the text before the break, the engine is the cause, otherwise the break.
func judge(r *event.Reuse, tokens, cached int, prefill time.Duration) (m CacheMiss) {
	if r.With == 0 || r.Bytes <= 0 || tokens <= 0 || cached >= tokens {
		return CacheMiss{}
	}
	slack := max(slackTokens, int(slackShare*float64(tokens)))
	of := func(bytes int) int { return int(float64(tokens) * float64(min(bytes, r.Bytes)) / float64(r.Bytes)) }
	switch common, same := of(r.Common), of(r.Same); {
	case common-cached > slack:
		m = CacheMiss{Kind: event.BreakNone, With: r.With, Tokens: common - cached}
	case r.Kind != event.BreakNone && same > slack:
		m = CacheMiss{Kind: r.Kind, Place: r.Place, At: r.At, With: r.With, Tokens: min(same, tokens-cached)}
	default:
		return CacheMiss{}
	}
	m.Lost = time.Duration(float64(prefill) * float64(m.Tokens) / float64(tokens-cached))
	return m
}

// breakTexts describe the kinds of breaks.
var breakTexts = [event.NumBreaks]string{
	event.BreakNone:         "the same text was not reused",
	event.BreakTimestamp:    "a timestamp differs",
	event.BreakIdentifier:   "an identifier differs",
	event.BreakNumber:       "a number differs",
	event.BreakToolOrder:    "the order of the tools differs",
	event.BreakTools:        "the tools differ",
	event.BreakInstructions: "the instructions differ",
	event.BreakAnswer:       "an earlier answer is written differently",
	event.BreakTrimmed:      "earlier messages are missing",
	event.BreakMessage:      "a message differs",
	event.BreakText:         "the prompt differs",
	event.BreakTokens:       "a token differs",
}

// Words says why, for people.
func (m *CacheMiss) Words() string { return breakTexts[min(m.Kind, event.NumBreaks-1)] }

// Where says where the prompt stops to be the same: "messages[3].content, character 214"; "" if nothing differs.
func (m *CacheMiss) Where() string {
	switch {
	case m.Place == "":
		return ""
	case m.Kind == event.BreakTokens:
		return m.Place + ", token " + strconv.Itoa(m.At)
	}
	return m.Place + ", character " + strconv.Itoa(m.At)
}

// CacheMiss returns what a prompt cache could have kept of the prompt and did not. It is known once the request has ended.
func (r *Request) CacheMiss() CacheMiss {
	if r.AnyCached || !r.State.Final() {
		return CacheMiss{}
	}
	return judge(&r.Reuse, r.PromptTokens, r.CachedTokens, r.part(event.StagePrompt))
}

// CacheMisses sums up the misses of the prompt cache.
type CacheMisses struct {
	Prefill time.Duration // of all requests
	Lost    time.Duration // of it, for what a cache could have kept
	Kinds   []MissKind    // that occurred, the costliest first
}

// MissKind sums up the misses of one kind.
type MissKind struct {
	CacheMiss // the costliest of them; Tokens and Lost are sums
	Requests  int
	most      time.Duration
}

// SumCacheMisses sums up the misses of requests that have ended.
func SumCacheMisses(requests iter.Seq[*Request]) (m CacheMisses) {
	for r := range requests {
		if !r.State.Final() {
			continue
		}
		m.Prefill += r.part(event.StagePrompt)
		x := r.CacheMiss()
		if x.Tokens == 0 {
			continue
		}
		m.Lost += x.Lost
		i := slices.IndexFunc(m.Kinds, func(k MissKind) bool { return k.Kind == x.Kind })
		if i < 0 {
			m.Kinds = append(m.Kinds, MissKind{CacheMiss: CacheMiss{Kind: x.Kind}})
			i = len(m.Kinds) - 1
		}
		k := &m.Kinds[i]
		if k.Requests++; x.Lost > k.most || k.Requests == 1 {
			k.most, k.Place, k.At, k.With = x.Lost, x.Place, x.At, x.With
		}
		k.Tokens += x.Tokens
		k.Lost += x.Lost
	}
	slices.SortStableFunc(m.Kinds, func(a, b MissKind) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Tokens, a.Tokens))
	})
	return m
}
