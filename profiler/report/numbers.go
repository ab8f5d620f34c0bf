package report

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Numbers is an object of named numbers, in order. In JSON it has the reasons of absent ones in absent and, if they may
// be a server's, the origins of the others in origin.
type Numbers struct {
	Name    string // of what they are, if there are several
	list    []named
	origins bool
}

// named is a number with its name, which ends in its unit.
type named struct {
	Name string        `json:"name"`
	N    event.Reading `json:"value"`
}

// Of returns the number with a name; "not reported" without one.
func (n *Numbers) Of(name string) event.Reading {
	if i := n.index(name); i >= 0 {
		return n.list[i].N
	}
	return event.Reading{}
}

func (n *Numbers) index(name string) int {
	return slices.IndexFunc(n.list, func(o named) bool { return o.Name == name })
}

// set sets a number, at its place if it is there.
func (n *Numbers) set(name string, v event.Reading) {
	if i := n.index(name); i >= 0 {
		n.list[i].N = v
		return
	}
	n.list = append(n.list, named{name, v})
}

// rates returns the numbers of a part of the report, which the catalogue of the store lists.
func rates(s *store.Snapshot, part string) (out Numbers) {
	out.origins = true
	for i := range store.Rates {
		if name, ok := strings.CutPrefix(store.Rates[i].JSON, part+"."); ok {
			out.set(name, store.Rates[i].Of(s, metric.Session))
		}
	}
	return out
}

// sampled returns the numbers of a sample that the catalogue of events lists.
func sampled[T any](rows []event.Field[T], of *T) (out Numbers) {
	for i := range rows {
		if rows[i].JSON != "" {
			out.set(rows[i].JSON, *rows[i].At(of))
		}
	}
	return out
}

// MarshalJSON writes the object.
func (n Numbers) MarshalJSON() ([]byte, error) {
	var all []member
	absent, origin := map[string]string{}, map[string]string{}
	if n.Name != "" {
		all = append(all, member{"name", n.Name})
	}
	for _, o := range n.list {
		if all = append(all, member{o.Name, o.N}); !o.N.OK() {
			absent[o.Name] = o.N.Absence()
		} else if n.origins {
			origin[o.Name] = o.N.Origin.String()
		}
	}
	if len(absent) > 0 {
		all = append(all, member{"absent", absent})
	}
	if len(origin) > 0 {
		all = append(all, member{"origin", origin})
	}
	return writeMembers(all...)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Numbers) UnmarshalJSON(src []byte) error {
	*n = Numbers{}
	var absent, origin map[string]string
	err := eachMember(src, func(name string, v []byte) error {
		switch name {
		case "name":
			return json.Unmarshal(v, &n.Name)
		case "absent":
			return json.Unmarshal(v, &absent)
		case "origin":
			n.origins = true
			return json.Unmarshal(v, &origin)
		}
		n.list = append(n.list, named{Name: name})
		return json.Unmarshal(v, &n.list[len(n.list)-1].N)
	})
	for i := range n.list {
		explain(&n.list[i].N, absent[n.list[i].Name])
		explain(&n.list[i].N, origin[n.list[i].Name])
	}
	return err
}
