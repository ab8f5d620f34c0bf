package store

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// MaxServerNumbers bounds the numbers of one server that are summed up over the session, each about 120 bytes.
const MaxServerNumbers = 256

// NumberKind is how the numbers of a server add up over the session.
type NumberKind uint8

// The kinds of numbers.
const (
	CurrentValue NumberKind = iota // as of a moment: the session has a mean over time, and a largest value
	CountedTotal                   // the session has the total
	Quotient                       // of two counts: the session has the quotient of their totals
)

// ServerNumber is a number of a server over the session.
type ServerNumber struct {
	Name   string        `json:"name"` // as of an event.NamedReading
	Kind   NumberKind    `json:"-"`
	Value  event.Reading `json:"value"`  // over the session
	Max    event.Reading `json:"max"`    // the largest; of a CurrentValue only
	Last   event.Reading `json:"last"`   // the last one that there was, or what was counted since the last poll
	Origin event.Origin  `json:"origin"` // of Last
	At     event.Time    `json:"-"`      // of Last

	part, whole float64 // a CurrentValue x ns, and ns; a total; the totals of a Quotient
}

// add adds a reading at a time, with what it adds to the sums over the session.
func (n *ServerNumber) add(at event.Time, last event.Reading, part, whole float64) {
	first := !n.Last.OK()
	n.part, n.whole, n.Last, n.Origin, n.At, n.Value = n.part+part, n.whole+whole, last, last.Origin, at, last
	switch {
	case n.Kind == CountedTotal:
		n.Value = event.DerivedValue(n.part)
	case n.whole > 0:
		n.Value = event.DerivedValue(quotient(n.Name, n.part, n.whole))
	}
	if n.Kind == CurrentValue {
		if !first {
			last.V = max(last.V, n.Max.V)
		}
		n.Max = last
		n.Value.V = min(n.Value.V, last.V) // a mean is at most that, but for rounding
	}
}

// quotient returns part / whole; a share is at most 1.
func quotient(name string, part, whole float64) float64 {
	if event.IsShare(name) {
		return metric.Share(part, whole)
	}
	return part / whole
}

// serverNumbers are in the order in which they first came.
type serverNumbers []ServerNumber

// of returns the number with a name and kind, which is added unless there are too many: then it is nil. A number that
// changes its kind starts again: what it was before cannot be added up. But a Quotient stays one: a report without new
// counts has only the last value.
func (s *serverNumbers) of(name string, kind NumberKind) *ServerNumber {
	name = clip(name, MaxName)
	i := slices.IndexFunc(*s, func(n ServerNumber) bool { return n.Name == name })
	switch {
	case i < 0 && len(*s) >= MaxServerNumbers:
		return nil
	case i < 0:
		i = len(*s)
		*s = append(*s, ServerNumber{Name: name, Kind: kind})
	case (*s)[i].Kind == Quotient && kind == CurrentValue:
		return nil
	case (*s)[i].Kind != kind:
		(*s)[i] = ServerNumber{Name: name, Kind: kind}
	}
	return &(*s)[i]
}

// add adds a report.
func (s *serverNumbers) add(at event.Time, p *event.Aggregates) {
	var buf [16]event.NamedReading
	for _, v := range currentValues(buf[:0], p) {
		if !v.OK() || slices.ContainsFunc(p.Ratios, func(r event.Ratio) bool { return r.Name == v.Name }) {
			continue
		}
		if n := s.of(v.Name, CurrentValue); n != nil {
			weight := float64(max(p.Interval, 0))
			n.add(at, v.Reading, v.V*weight, weight)
		}
	}
	for _, v := range p.Counts {
		if !v.OK() || v.V < 0 {
			continue
		}
		if n := s.of(v.Name, CountedTotal); n != nil {
			n.add(at, v.Reading, v.V, 0)
		}
	}
	for i := range p.Ratios {
		r := &p.Ratios[i]
		if !r.Part.OK() || !r.Whole.OK() || !event.PlausibleReading(r.Part.V/r.Whole.V) {
			continue
		}
		if n := s.of(r.Name, Quotient); n != nil {
			n.add(at, event.DerivedValue(quotient(r.Name, r.Part.V, r.Whole.V)), r.Part.V, r.Whole.V)
		}
	}
}

// Number returns the number with a name over the session; nil if there was none.
func (r *Aggregates) Number(name string) *ServerNumber {
	i := slices.IndexFunc(r.Numbers, func(n ServerNumber) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Numbers[i]
}

// currentValues appends the values of a report: those that every engine may have, absent or not, and this engine's own.
func currentValues(dst []event.NamedReading, p *event.Aggregates) []event.NamedReading {
	dst = append(dst,
		event.NamedReading{Name: "running", Reading: p.Running},
		event.NamedReading{Name: "waiting", Reading: p.Waiting},
		event.NamedReading{Name: "decode_tokens_per_s", Reading: p.Decode},
		event.NamedReading{Name: "prefill_tokens_per_s", Reading: p.Prefill},
		event.NamedReading{Name: "kv_usage_share", Reading: p.KVUsage},
		event.NamedReading{Name: "kv_used_cells", Reading: p.KVUsed},
		event.NamedReading{Name: "kv_total_cells", Reading: p.KVTotal},
		event.NamedReading{Name: event.RatioCacheHits, Reading: p.CacheHits})
	return append(dst, p.More...)
}

// NamedReadings returns the values and quotients of the last report.
func (r *Aggregates) NamedReadings() []event.NamedReading {
	out := currentValues(nil, &r.Aggregates)
	for i := range r.Numbers {
		if n := &r.Numbers[i]; n.Kind == Quotient && n.At == r.At && n.Name != event.RatioCacheHits {
			out = append(out, event.NamedReading{Name: n.Name, Reading: n.Last})
		}
	}
	return out
}
