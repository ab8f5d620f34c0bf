package report

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// member is a member of an object in JSON, and its value, or a pointer to it. Without a name it is a *Numbers, whose numbers
// are members of the object themselves.
type member struct {
	name string
	at   any
}

// writeMembers returns an object.
func writeMembers(all ...member) ([]byte, error) {
	out := []byte{'{'}
	for _, m := range all {
		v, err := json.Marshal(m.at)
		if err != nil {
			return nil, err
		}
		if _, inline := m.at.(*Numbers); inline && m.name == "" {
			v = v[1 : len(v)-1]
		} else {
			key, _ := json.Marshal(m.name) // a string
			v = slices.Concat(key, []byte{':'}, v)
		}
		if len(v) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, '}'), nil
}

// readMembers reads what writeMembers writes. Other members are numbers of the object.
func readMembers(src []byte, all ...member) error {
	var numbers *Numbers
	known := byName(all)
	if inline := known[""]; inline != nil {
		numbers = inline.(*Numbers)
	}
	rest := []byte{'{'}
	err := eachMember(src, func(name string, v []byte) error {
		if to := known[name]; to != nil && name != "" {
			return json.Unmarshal(v, to)
		}
		if name == "absent" || bytes.IndexByte([]byte("-0123456789n"), v[0]) >= 0 {
			key, _ := json.Marshal(name) // a string
			rest = append(append(append(append(rest, key...), ':'), v...), ',')
		}
		return nil
	})
	if err != nil || numbers == nil {
		return err
	}
	return json.Unmarshal(append(bytes.TrimSuffix(rest, []byte{','}), '}'), numbers)
}

func (h *Host) members() []member {
	return []member{
		{"known", &h.Sampled},
		{"", &h.Machine},
		{"core_shares", &h.Cores},
		{"core_frequencies_hz", &h.Clocks},
		{"engine", &h.Engine},
		{"llmtop", &h.Self},
		{"gpus", &h.GPUs},
		{"no_gpu", &h.NoGPU},
		{"over_run", &h.RunUsage},
	}
}

// byName are members by their names.
func byName(all []member) map[string]any {
	out := make(map[string]any, len(all))
	for _, m := range all {
		out[m.name] = m.at
	}
	return out
}

// JSONMembers is for clean.Dense.
func (h *Host) JSONMembers() map[string]any { return byName(h.members()) }

// JSONMembers is for clean.Dense.
func (u *RunUsage) JSONMembers() map[string]any { return byName(u.members()) }

// JSONMembers is for clean.Dense.
func (e *ReportedEarlier) JSONMembers() map[string]any { return byName(e.members()) }

// MarshalJSON writes the numbers of the machine beside its parts.
func (h Host) MarshalJSON() ([]byte, error) { return writeMembers(h.members()...) }

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Host) UnmarshalJSON(src []byte) error { return readMembers(src, h.members()...) }

func (u *RunUsage) members() []member {
	return []member{{"", &u.Machine}, {"engine", &u.Engine}, {"llmtop", &u.Self}, {"gpus", &u.GPUs}}
}

// MarshalJSON writes the numbers of the machine beside its parts.
func (u RunUsage) MarshalJSON() ([]byte, error) { return writeMembers(u.members()...) }

// UnmarshalJSON reads what MarshalJSON writes.
func (u *RunUsage) UnmarshalJSON(src []byte) error { return readMembers(src, u.members()...) }

func (e *ReportedEarlier) members() []member {
	return []member{{"", &e.Totals}, {"counts", &e.Counts}, {"times", &e.Latencies}}
}

// MarshalJSON writes the totals beside the other counts.
func (e ReportedEarlier) MarshalJSON() ([]byte, error) { return writeMembers(e.members()...) }

// UnmarshalJSON reads what MarshalJSON writes.
func (e *ReportedEarlier) UnmarshalJSON(src []byte) error { return readMembers(src, e.members()...) }

// Latencies are those that llmtop measured. In JSON they are members of an object, by name.
type Latencies []Latency

// MarshalJSON writes all latencies of the catalogue; null for those without values.
func (all Latencies) MarshalJSON() ([]byte, error) {
	var out []member
	for id := range store.Latencies {
		var of *Distribution
		for i := range all {
			if all[i].Name == store.Latencies[id].JSON {
				of = &all[i].Distribution
			}
		}
		out = append(out, member{store.Latencies[id].JSON, of})
	}
	return writeMembers(out...)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (all *Latencies) UnmarshalJSON(src []byte) error {
	var found [store.NumLatencies]*Distribution
	var in []member
	for id := range found {
		in = append(in, member{store.Latencies[id].JSON, &found[id]})
	}
	err := readMembers(src, in...)
	*all = nil
	for id, d := range found {
		if d != nil {
			*all = append(*all, Latency{Name: store.Latencies[id].JSON, Origin: event.Measured.String(), Distribution: *d})
		}
	}
	return err
}

// quantile is a percentile of a server in JSON.
type quantile struct {
	Seconds float64 `json:"value_s"`
	Bound   string  `json:"bound"`
}

func (l *Latency) members(percentiles *[len(countedPercentiles)]*quantile) []member {
	out := []member{{"name", &l.Name}, {"count", &l.Count}, {"mean", &l.Mean}}
	for i, name := range countedPercentiles {
		out = append(out, member{name, &percentiles[i]})
	}
	return append(out, member{"origin", &l.Origin}, member{"bounds_s", &l.Edges}, member{"counts", &l.Counts})
}

// MarshalJSON writes a latency that a server counts: without its buckets if it is from before the session.
func (l Latency) MarshalJSON() ([]byte, error) {
	var percentiles [len(countedPercentiles)]*quantile
	for i, name := range countedPercentiles {
		if v, bound := l.percentile(name); bound != "" {
			percentiles[i] = &quantile{v, bound}
		}
	}
	all := l.members(&percentiles)
	if l.Origin == "" {
		all = all[:len(all)-3]
	}
	return writeMembers(all...)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Latency) UnmarshalJSON(src []byte) error {
	var percentiles [len(countedPercentiles)]*quantile
	err := readMembers(src, l.members(&percentiles)...)
	for i, q := range percentiles {
		if q != nil {
			l.setPercentile(countedPercentiles[i], q.Seconds, q.Bound)
		}
	}
	return err
}
