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
	Name  string // as of an event.NamedReading
	Kind  NumberKind
	Value event.Reading // over the session
	Max   event.Reading // the largest; of a CurrentValue only
	Last  event.Reading // the last one that there was
	At    event.Time    // of Last
}

// serverNumber sums up a ServerNumber.
type serverNumber struct {
	name        string
	kind        NumberKind
	part, whole float64 // a CurrentValue x ns, and ns; a total; the totals of a Quotient
	most        float64
	last        event.Reading
	at          event.Time
}

func (n *serverNumber) view() ServerNumber {
	out := ServerNumber{Name: n.name, Kind: n.kind, Value: n.last, Last: n.last, At: n.at}
	switch {
	case n.kind == CountedTotal:
		out.Value = event.DerivedValue(n.part)
	case n.whole > 0:
		out.Value = event.DerivedValue(quotient(n.name, n.part, n.whole))
	}
	if n.kind == CurrentValue {
		out.Max = event.Reading{V: n.most, Origin: n.last.Origin}
		out.Value.V = min(out.Value.V, n.most) // a mean is at most that, but for rounding
	}
	return out
}

// quotient returns part / whole; a share is at most 1.
func quotient(name string, part, whole float64) float64 {
	if event.IsShare(name) {
		return metric.Share(part, whole)
	}
	return part / whole
}

// serverNumbers are in the order in which they first came.
type serverNumbers []serverNumber

// of returns the number with a name and kind, which is added unless there are too many: then it is nil. A number that
// changes its kind starts again: what it was before cannot be added up. But a Quotient stays one: a report without new
// counts has only the last value.
func (s *serverNumbers) of(name string, kind NumberKind) *serverNumber {
	name = clip(name, MaxName)
	i := slices.IndexFunc(*s, func(n serverNumber) bool { return n.name == name })
	switch {
	case i < 0 && len(*s) >= MaxServerNumbers:
		return nil
	case i < 0:
		i = len(*s)
		*s = append(*s, serverNumber{name: name, kind: kind})
	case (*s)[i].kind == Quotient && kind == CurrentValue:
		return nil
	case (*s)[i].kind != kind:
		(*s)[i] = serverNumber{name: name, kind: kind}
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
			n.most = max(n.most, v.V)
			if !n.last.OK() {
				n.most = v.V
			}
			n.part, n.whole, n.last, n.at = n.part+v.V*weight, n.whole+weight, v.Reading, at
		}
	}
	for _, v := range p.Counts {
		if !v.OK() || v.V < 0 {
			continue
		}
		if n := s.of(v.Name, CountedTotal); n != nil {
			n.part, n.last, n.at = n.part+v.V, v.Reading, at
		}
	}
	for i := range p.Ratios {
		r := &p.Ratios[i]
		if !r.Part.OK() || !r.Whole.OK() || !event.PlausibleReading(r.Part.V/r.Whole.V) {
			continue
		}
		if n := s.of(r.Name, Quotient); n != nil {
			n.part, n.whole, n.at = n.part+r.Part.V, n.whole+r.Whole.V, at
			n.last = event.DerivedValue(quotient(r.Name, r.Part.V, r.Whole.V))
		}
	}
}

// view returns the numbers.
func (s serverNumbers) view() []ServerNumber {
	out := make([]ServerNumber, len(s))
	for i := range s {
		out[i] = s[i].view()
	}
	return out
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
