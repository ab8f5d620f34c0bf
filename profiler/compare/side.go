package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
)

// Side is one of the two sides of a comparison.
type Side struct {
	Name       string
	Command    string // arguments of llmtop that repeat a run; "": unknown
	Points     []Point
	Conditions []Condition
	Parts      map[string]float64 // mean TTFT components of warm requests in s
	Experts    [][]uint64         // picks of each expert, by layer; nil: no picks
	Lost       []string           // causes that took a significant part of the time of requests
}

// Point is one point of a workload, for example a concurrency, with its repeated runs, oldest first.
type Point struct {
	Name string // "" if the report has no points
	Runs []Run
}

// Run is one run with its finished requests.
type Run struct {
	Start    time.Time // zero if unknown
	Requests []report.Request
}

func (s *Side) point(name string) *Point {
	for i := range s.Points {
		if s.Points[i].Name == name {
			return &s.Points[i]
		}
	}
	return nil
}

// Condition is a property that must be equal on both sides for the comparison to be valid.
type Condition struct{ Name, Value string }

// Difference is a condition that differs.
type Difference struct {
	Name string `json:"name"`
	Base string `json:"base"`
	New  string `json:"new"`
}

// NewSide builds a side from reports. Each report is one run, or several if a benchmark wrote it. All must have the
// same conditions.
func NewSide(name string, reports ...*report.Report) (*Side, error) {
	reports = slices.SortedStableFunc(slices.Values(reports), func(a, b *report.Report) int { return a.Started.Compare(b.Started) })
	s := &Side{Name: name, Parts: map[string]float64{}}
	parts, lost := map[string]int{}, []loss(nil)
	for i, r := range reports {
		if err := requirePerRequest(r); err != nil {
			return nil, fmt.Errorf("compare %s: %w", name, err)
		}
		conditions := conditionsOf(r)
		if i == 0 {
			s.Conditions, s.Command = conditions, r.Command
		} else if d := (&Side{Conditions: conditions}).differencesFrom(s); len(d) > 0 {
			return nil, fmt.Errorf("compare %s: reports of one side differ in %s (%s, %s)", name, clean.Name(d[0].Name), clean.Name(d[0].New), clean.Name(d[0].Base))
		}
		s.addRuns(r, len(reports) == 1)
		for _, q := range r.Finished() {
			if q.Cold {
				continue
			}
			for _, part := range q.Parts {
				s.Parts[part.Name] += part.Time.V
				parts[part.Name]++
			}
		}
		s.addPicks(r.Experts)
		lost = addLosses(lost, r)
	}
	for part, n := range parts {
		s.Parts[part] /= float64(n)
	}
	s.Lost = lossLines(lost, len(reports))
	return s, nil
}

// loss is one cause: in how many reports it is significant, and the largest share of the time of requests that it took.
type loss struct {
	text    string
	reports int
	share   float64
}

func addLosses(lost []loss, r *report.Report) []loss {
	for i := range r.Causes {
		c := &r.Causes[i]
		at := slices.IndexFunc(lost, func(l loss) bool { return l.text == c.Text })
		if at < 0 {
			at, lost = len(lost), append(lost, loss{text: c.Text})
		}
		lost[at].reports, lost[at].share = lost[at].reports+1, max(lost[at].share, c.Observed.V)
	}
	return lost
}

// lossLines describes the causes: "38 % of the time of requests, in 1 of 3 reports: other processes used the cores".
func lossLines(lost []loss, reports int) (out []string) {
	slices.SortStableFunc(lost, func(a, b loss) int { return cmp.Compare(b.share, a.share) })
	for _, l := range lost {
		words := metric.Percent(l.share) + " of the time of requests"
		if reports > 1 {
			words = fmt.Sprintf("up to %s, in %d of %d reports", words, l.reports, reports)
		}
		out = append(out, words+": "+l.text)
	}
	return out
}

// disturbances names what took time on each side besides the engine's own work: it may explain a change.
func disturbances(base, next *Side) (out []string) {
	for _, side := range []*Side{base, next} {
		for _, line := range side.Lost {
			out = append(out, side.Name+" lost "+line)
		}
	}
	return out
}

// requirePerRequest returns an error for a report without per-request metrics, which the comparison needs.
func requirePerRequest(r *report.Report) error {
	switch {
	case r.Fleet != nil:
		return fmt.Errorf("the report has %d engines: write a report of one with llmtop report --engine NAME --out FILE.json", len(r.Fleet.Replicas))
	case len(r.Reported.Numbers) > 0 && !slices.ContainsFunc(r.Finished(), func(q report.Request) bool { return q.TTFT.OK() || q.TPOT.OK() || q.E2EL.OK() }):
		return fmt.Errorf("%s reports aggregate metrics only, and the comparison needs per-request metrics: measure it with llmtop bench or through llmtop proxy", clean.Name(r.Engine.Name))
	}
	return nil
}

// addRuns adds the runs of a report: those of its benchmark, or the whole report as one run. Of several reports, each is
// one run, because runs of one process share its noise.
func (s *Side) addRuns(r *report.Report, only bool) {
	if r.Bench == nil {
		s.add("", r.Started, r.Finished(), false)
		return
	}
	byID := map[event.RequestID]report.Request{}
	for _, q := range r.Finished() {
		byID[q.ID] = q
	}
	for _, p := range r.Bench.Points {
		for i, run := range p.Runs {
			var requests []report.Request
			for _, id := range run.Requests {
				if q, ok := byID[id]; ok {
					requests = append(requests, q)
				}
			}
			s.add(p.Name, r.Started, requests, i > 0 && !only)
		}
	}
}

// add adds a run to a point, or more requests to its last run.
func (s *Side) add(name string, start time.Time, requests []report.Request, more bool) {
	p := s.point(name)
	if p == nil {
		s.Points = append(s.Points, Point{Name: name})
		p = &s.Points[len(s.Points)-1]
	}
	if more {
		last := &p.Runs[len(p.Runs)-1]
		last.Requests = append(last.Requests, requests...)
		return
	}
	p.Runs = append(p.Runs, Run{start, requests})
}

// settingsName is the name of all settings together.
const settingsName = "settings"

// conditionsOf lists the known conditions that affect a run besides the engine's code: model, machine and settings.
func conditionsOf(r *report.Report) []Condition {
	var out []Condition
	add := func(name, value string) {
		if value != "" {
			out = append(out, Condition{name, value})
		}
	}
	if m := r.Model; m != nil {
		add("model", strings.TrimSpace(fmt.Sprintf("%s %s, %.0f bytes", m.Name, value(m.Quantisation), m.Bytes.V)))
	}
	add("CPU", value(r.Machine.CPU))
	add("OS", strings.Trim(value(r.Machine.OS)+"/"+value(r.Machine.Arch), "/"))
	if n := r.Machine.Cores; n != nil {
		add("cores", fmt.Sprint(*n))
	}
	add("engine", r.Engine.Name)
	add("device", r.Engine.Device)
	if n := r.Engine.Threads; n.OK() {
		add("threads", fmt.Sprint(n.V))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Configuration)) {
		if !ignoredSettings[name] {
			out = append(out, Condition{"--" + name, r.Configuration[name]}) // "" is a setting, too
		}
	}
	return out
}

// ignoredSettings are settings that affect only the display, name the source of a report, or are drawn at random.
var ignoredSettings = map[string]bool{
	"theme": true, "ascii": true, "no-mouse": true, "fps": true, "layout": true, "low-bandwidth": true, "no-remember": true,
	"plain": true, "replay": true, "attach": true,
	"otlp": true, "match": true, "to": true, "listen": true, "prompt-salt": true,
	"slo": true,
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// notRecorded is the value of a condition that a side does not have.
const notRecorded = "not recorded"

func (s *Side) condition(name string) string {
	for _, c := range s.Conditions {
		if c.Name == name {
			return c.Value
		}
	}
	return notRecorded
}

// settings counts the settings among the conditions.
func (s *Side) settings() string {
	n := 0
	for _, c := range s.Conditions {
		if c.isSetting() {
			n++
		}
	}
	if n == 0 {
		return notRecorded
	}
	return fmt.Sprint(n, " recorded")
}

func (c Condition) isSetting() bool { return strings.HasPrefix(c.Name, "--") }

// differencesFrom lists the conditions of s that differ from those of base. If one of them has no settings at all, that
// is one difference.
func (s *Side) differencesFrom(base *Side) []Difference {
	var out []Difference
	one, other := base.settings(), s.settings()
	compared := one != notRecorded && other != notRecorded
	if one != other && !compared {
		out = append(out, Difference{settingsName, one, other})
	}
	for _, c := range base.Conditions {
		if v := s.condition(c.Name); v != c.Value && (compared || !c.isSetting()) {
			out = append(out, Difference{c.Name, c.Value, v})
		}
	}
	for _, c := range s.Conditions {
		if v := base.condition(c.Name); v == notRecorded && (compared || !c.isSetting()) {
			out = append(out, Difference{c.Name, v, c.Value})
		}
	}
	return out
}

// unchecked returns a note on the conditions that neither side has, if there are any.
func unchecked(base, next *Side) []string {
	var names []string
	for _, name := range []string{"model", "CPU", "OS"} {
		if base.condition(name) == notRecorded && next.condition(name) == notRecorded {
			names = append(names, name)
		}
	}
	if base.settings() == notRecorded && next.settings() == notRecorded {
		names = append(names, settingsName)
	}
	if len(names) == 0 {
		return []string{}
	}
	return []string{"not checked, because neither side has them recorded: " + strings.Join(names, ", ")}
}

func (d Difference) String() string {
	return clean.Name(d.Name) + ": " + clean.Name(d.Base) + " against " + clean.Name(d.New)
}

// addPicks adds the picks of a report; nil: none.
func (s *Side) addPicks(x *report.Experts) {
	if x == nil {
		return
	}
	for l, row := range x.Layers {
		if l == len(s.Experts) {
			s.Experts = append(s.Experts, make([]uint64, len(row)))
		}
		for e := range min(len(row), len(s.Experts[l])) {
			s.Experts[l][e] = event.AddCount(s.Experts[l][e], row[e])
		}
	}
}
