package report

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/store"
)

// Fleet is several engines that were watched together. Each has a report of its own; nothing of theirs is merged but what can be added.
type Fleet struct {
	Connected int           `json:"connected"` // at the end
	Replicas  []Replica     `json:"replicas"`
	Medians   []FleetNumber `json:"medians"` // over those that are connected
	Sums      []FleetNumber `json:"sums"`
	OutOfLine []OutOfLine   `json:"out_of_line"` // the farthest first
}

// Replica is one of them.
type Replica struct {
	Name    string        `json:"replica"`
	Model   *string       `json:"model"`
	State   string        `json:"state"`   // of the connection, or if that is as it should be, of the engine
	Numbers []FleetNumber `json:"numbers"` // by which replicas are compared; latencies are of the whole session
	Report  *Report       `json:"report"`
}

// FleetNumber is a number of a replica, or of all. Its name ends in its unit; otherwise it is a count.
type FleetNumber struct {
	Name   string `json:"name"`
	Value  Number `json:"value"`
	Bound  string `json:"bound"`
	Origin string `json:"origin"`
}

// OutOfLine is a number of a replica that is far from the median of its model.
type OutOfLine struct {
	Replica string `json:"replica"`
	Name    string `json:"name"`
	Value   Number `json:"value"`
	Bound   string `json:"bound"`
	Median  Number `json:"median"`
	Times   Number `json:"times_median"` // null where the median is 0
}

// Member is an engine that is to be reported with others.
type Member struct {
	Name     string
	Snapshot *store.Snapshot
	Report   *Report
}

// Several makes one report of engines that were watched together, by name. Its totals are sums over those that tell them; what cannot be added, as percentiles, is
// in the report of each alone.
func Several(meta Meta, members []Member) *Report {
	slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	r := Build(meta, &store.Snapshot{}, NewCollector())
	f := &Fleet{Replicas: []Replica{}, Medians: []FleetNumber{}, Sums: []FleetNumber{}, OutOfLine: []OutOfLine{}}
	r.Fleet, r.Totals = f, Totals{}
	var all []*fleet.Replica
	for i := range members {
		m := &members[i]
		one := measured(m)
		all = append(all, one)
		if !one.Broken {
			f.Connected++
		}
		for j := range m.Report.Requests {
			m.Report.Requests[j].Replica = m.Name
		}
		f.Replicas = append(f.Replicas, Replica{m.Name, text(one.Model), one.State, numbersOf(one), m.Report})
		r.join(m.Report, i == 0)
	}
	r.Totals.Absent, r.Totals.Origin = absences(r.Totals), origins(r.Totals)
	r.identify()
	for field := range fleet.NumFields {
		if field.Kind() == fleet.Word {
			continue
		}
		f.Medians = appendCell(f.Medians, field, fleet.Median(all, field))
		if field == fleet.Running || field == fleet.Waiting || field == fleet.Decode {
			f.Sums = appendCell(f.Sums, field, fleet.Cell{Reading: fleet.Sum(all, field)})
		}
	}
	for _, o := range fleet.Outliers(all) {
		out := OutOfLine{Replica: o.Replica.Name, Name: o.Field.JSON(), Value: Number(o.Value.Reading), Bound: cellBound(o.Value), Median: Measured(o.Median)}
		if o.Median != 0 {
			out.Times = Measured(o.Times())
		}
		f.OutOfLine = append(f.OutOfLine, out)
	}
	return r
}

// Named is the report of an engine by its name, or by a part of it that no other has; nil if there is none.
func (f *Fleet) Named(name string) (found *Report) {
	if i := slices.IndexFunc(f.Replicas, func(r Replica) bool { return r.Name == name }); i >= 0 {
		return f.Replicas[i].Report
	}
	for i := range f.Replicas {
		switch r := &f.Replicas[i]; {
		case !strings.Contains(r.Name, name):
		case found != nil:
			return nil
		default:
			found = r.Report
		}
	}
	return found
}

// measured is a member as it is compared with the others.
func measured(m *Member) *fleet.Replica {
	e := &m.Snapshot.Engine
	out := &fleet.Replica{Name: m.Name, Model: m.Snapshot.Model.Name, State: e.State.String()}
	if link := e.Remote.Link; link != event.LinkNone && link != event.LinkConnected {
		out.State, out.Broken = link.String(), true
	}
	out.Measure(m.Snapshot, session)
	return out
}

func numbersOf(r *fleet.Replica) []FleetNumber {
	out := []FleetNumber{}
	for f := range fleet.NumFields {
		if f.Kind() != fleet.Word {
			out = appendCell(out, f, r.Cells[f])
		}
	}
	return out
}

// appendCell appends a number that is known.
func appendCell(to []FleetNumber, f fleet.Field, c fleet.Cell) []FleetNumber {
	if !c.OK() {
		return to
	}
	return append(to, FleetNumber{f.JSON(), Number(c.Reading), cellBound(c), c.Origin.String()})
}

// cellBound is the word for what a cell says; one that is not of buckets is the number itself.
func cellBound(c fleet.Cell) string {
	if word := boundOf(c.Edge); word != "" {
		return word
	}
	return boundWithin
}

// join adds what can be added of a replica.
func (r *Report) join(of *Report, first bool) {
	if first || of.Started.Before(r.Started) {
		r.Started = of.Started
	}
	r.Totals.join(&of.Totals)
	for kind, n := range of.Lost {
		r.Lost[kind] += n
	}
	r.Cut.Requests += of.Cut.Requests
	r.Cut.Tokens += of.Cut.Tokens
	r.Cut.Groups += of.Cut.Groups
}

// join adds the counts of a replica, as far as it tells them.
func (t *Totals) join(of *Totals) {
	theirs := of.counts()
	for i, n := range t.counts() {
		if v := *theirs[i]; v.OK() {
			*n = Number(event.From(n.V + v.V))
		} else {
			n.Origin = max(n.Origin, v.Origin)
		}
	}
	if !t.Duration.OK() || of.Duration.V > t.Duration.V {
		t.Duration = of.Duration
	}
	if d, ok := t.Duration.Positive(); ok && t.GeneratedTokens.OK() {
		t.TTPS = Number(event.From(t.GeneratedTokens.V / d))
	}
}

// counts are the numbers that can be added.
func (t *Totals) counts() []*Number {
	return []*Number{
		&t.Queued, &t.Running, &t.Finished, &t.Cancelled, &t.Failed, &t.PromptTokens, &t.CachedTokens, &t.PaddingTokens, &t.GeneratedTokens, &t.Steps, &t.Stalls,
	}
}

// identify says what the replicas are, as far as they are the same.
func (r *Report) identify() {
	var names []string
	known := false // a model, or that there is none
	for i := range r.Fleet.Replicas {
		one := r.Fleet.Replicas[i].Report
		c := one.Engine.Connection
		if c != nil && c.State != event.LinkConnected.String() && one.Reported == nil && len(one.Requests) == 0 {
			continue // nothing was heard of it, not even what it is
		}
		if name := one.Engine.Name; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		if r.Engine.State != event.EngineReady.String() && (c == nil || c.State == event.LinkConnected.String()) {
			r.Engine.State = one.Engine.State
		}
		if !known {
			r.Model, known = one.Model, true
		} else if r.Model != nil && (one.Model == nil || one.Model.Name != r.Model.Name) {
			r.Model = nil
		}
	}
	r.Engine.Name = strings.Join(names, ", ")
}
