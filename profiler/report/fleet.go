package report

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Fleet holds several engines that were watched together. Each has its own report; only additive numbers are merged.
type Fleet struct {
	Connected int           `json:"connected"` // at the end
	Replicas  []Replica     `json:"replicas"`
	Medians   []FleetNumber `json:"medians"` // over the connected ones
	Sums      []FleetNumber `json:"sums"`
	Outliers  []Outlier     `json:"out_of_line"` // largest deviation first
	Differ    []Difference  `json:"differences"` // where no single replica is an outlier
}

// Replica is one engine of a fleet.
type Replica struct {
	Name    string        `json:"replica"`
	Model   *string       `json:"model"`
	State   string        `json:"state"`   // of the connection if it is not connected, otherwise of the engine
	Numbers []FleetNumber `json:"numbers"` // compared numbers; latencies are of the whole session
	Report  *Report       `json:"report"`
}

// FleetNumber is a number of a replica, or of all. Its name ends in its unit; a name without a unit is a count.
type FleetNumber struct {
	Name   string        `json:"name"`
	Value  event.Reading `json:"value"`
	Bound  string        `json:"bound"`
	Origin string        `json:"origin"`
}

// Outlier is a number of a replica that is far from the median of its model.
type Outlier struct {
	Replica string        `json:"replica"`
	Name    string        `json:"name"`
	Value   event.Reading `json:"value"`
	Bound   string        `json:"bound"`
	Median  event.Reading `json:"median"`
	Times   event.Reading `json:"times_median"` // null if the median is 0
}

// Difference is a number in which replicas of a model are far apart without an outlier: one of two, or half of them.
type Difference struct {
	Name      string        `json:"name"`
	Lowest    string        `json:"lowest"` // replica
	LowValue  event.Reading `json:"lowest_value"`
	Highest   string        `json:"highest"`
	HighValue event.Reading `json:"highest_value"`
}

// Member is an engine of a fleet report.
type Member struct {
	Name     string
	Snapshot *store.Snapshot
	Report   *Report
}

// BuildFleet returns one report of several engines, sorted by name. Totals are sums over the engines that report them;
// what cannot be added, such as percentiles, is in the report of each engine.
func BuildFleet(meta Meta, members []Member) *Report {
	slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	r := Build(meta, store.Empty())
	f := &Fleet{Replicas: []Replica{}, Medians: []FleetNumber{}, Sums: []FleetNumber{}, Outliers: []Outlier{}, Differ: []Difference{}}
	r.Fleet, r.Totals = f, Totals{}
	var all []*fleet.Replica
	for i := range members {
		m := &members[i]
		one := measureMember(m)
		all = append(all, one)
		if !one.Broken {
			f.Connected++
		}
		for j := range m.Report.Requests {
			m.Report.Requests[j].Replica = m.Name
		}
		f.Replicas = append(f.Replicas, Replica{m.Name, optionalText(one.Model), one.State, replicaNumbers(one), m.Report})
		addReplica(r, m.Report, i == 0)
	}
	explainNumbers(&r.Totals)
	setIdentity(r)
	for field := range fleet.NumFields {
		if field.Unit() == metric.Word {
			continue
		}
		f.Medians = appendCell(f.Medians, field, fleet.Median(all, field))
		if field == fleet.Running || field == fleet.Waiting || field == fleet.Decode {
			f.Sums = appendCell(f.Sums, field, fleet.Cell{Reading: fleet.Sum(all, field)})
		}
	}
	far := fleet.Outliers(all)
	differ, _ := fleet.Differences(all, far)
	for i := range differ {
		low, high := &differ[i].Low, &differ[i].High
		f.Differ = append(f.Differ, Difference{low.JSON(), low.Replica.Name, low.Value.Reading, high.Replica.Name, high.Value.Reading})
	}
	for _, o := range far {
		out := Outlier{Replica: o.Replica.Name, Name: o.JSON(), Value: o.Value.Reading, Bound: cellBound(o.Value), Median: Measured(o.Median)}
		if o.Median != 0 {
			out.Times = Measured(o.Times())
		}
		f.Outliers = append(f.Outliers, out)
	}
	return r
}

// Find returns the report of an engine by its name, or by a part of the name that is unique; nil if absent.
func (f *Fleet) Find(name string) (found *Report) {
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

// measureMember returns a member as a replica that can be compared.
func measureMember(m *Member) *fleet.Replica {
	e := &m.Snapshot.Engine
	out := &fleet.Replica{Name: m.Name, Model: m.Snapshot.Model.Name, State: e.State.String()}
	if link := e.Remote.Link; link != event.LinkNone && link != event.LinkConnected {
		out.State, out.Broken = link.String(), true
	}
	out.Measure(m.Snapshot, session)
	return out
}

// replicaNumbers returns the available numbers of a replica.
func replicaNumbers(r *fleet.Replica) []FleetNumber {
	out := []FleetNumber{}
	for f := range fleet.NumFields {
		if f.Unit() != metric.Word {
			out = appendCell(out, f, r.Cells[f])
		}
	}
	return out
}

// appendCell appends a number unless it is absent.
func appendCell(to []FleetNumber, f fleet.Field, c fleet.Cell) []FleetNumber {
	if !c.OK() {
		return to
	}
	return append(to, FleetNumber{f.JSON(), c.Reading, cellBound(c), c.Origin.String()})
}

// cellBound returns the bound of a cell; cells that do not come from buckets are exact: "within".
func cellBound(c fleet.Cell) string {
	if word := boundName(c.Edge); word != "" {
		return word
	}
	return boundWithin
}

// addReplica adds the additive numbers of a replica.
func addReplica(r *Report, o *Report, first bool) {
	if first || o.Started.Before(r.Started) {
		r.Started = o.Started
	}
	r.Totals.add(&o.Totals)
	for kind, n := range o.Dropped {
		r.Dropped[kind] += n
	}
	r.Omitted.Requests += o.Omitted.Requests
	r.Omitted.Tokens += o.Omitted.Tokens
	r.Omitted.Groups += o.Omitted.Groups
	r.Omitted.Stalls += o.Omitted.Stalls
	r.Omitted.Unmeasured += o.Omitted.Unmeasured
}

// add adds the counts that a replica reports.
func (t *Totals) add(o *Totals) {
	theirs := maps.Collect(numbers(reflect.ValueOf(o).Elem()))
	for name, n := range numbers(reflect.ValueOf(t).Elem()) {
		if n != &t.Duration && n != &t.TTPS {
			*n = n.Plus(*theirs[name])
		}
	}
	t.AtLeast = t.AtLeast || o.AtLeast
	t.PromptAtLeast, t.CachedAtLeast = t.PromptAtLeast || o.PromptAtLeast, t.CachedAtLeast || o.CachedAtLeast
	if o.FinishedSeen != nil {
		seen := *o.FinishedSeen
		if t.FinishedSeen != nil {
			seen = seen.Plus(*t.FinishedSeen)
		}
		t.FinishedSeen = &seen
	}
	if !t.Duration.OK() || o.Duration.V > t.Duration.V {
		t.Duration = o.Duration
	}
	t.Covered = max(t.Covered, o.Covered)
	if d, ok := t.time().Positive(); ok && t.GeneratedTokens.OK() {
		t.TTPS = event.DerivedValue(t.GeneratedTokens.V / d)
	}
}

// time returns the time that the counts cover.
func (t *Totals) time() event.Reading {
	if t.Covered > 0 {
		return event.DerivedValue(t.Covered)
	}
	return t.Duration
}

// setIdentity sets the engine names, the state and the model of the fleet; the model only if all replicas have the
// same.
func setIdentity(r *Report) {
	var names []string
	hasModel := false // the model of the first replica is set, possibly to nil
	for i := range r.Fleet.Replicas {
		one := r.Fleet.Replicas[i].Report
		c := one.Engine.Connection
		if c != nil && c.State != event.LinkConnected.String() && !one.Totals.Running.OK() && len(one.Requests) == 0 {
			continue // it never answered
		}
		if name := one.Engine.Name; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		if r.Engine.State != event.EngineReady.String() && (c == nil || c.State == event.LinkConnected.String()) {
			r.Engine.State = one.Engine.State
		}
		if !hasModel {
			r.Model, hasModel = one.Model, true
		} else if r.Model != nil && (one.Model == nil || one.Model.Name != r.Model.Name) {
			r.Model = nil
		}
	}
	r.Engine.Name = strings.Join(names, ", ")
}
