package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
)

// replicasListed is how many replicas a summary lists; JSON has all.
const replicasListed = 200

// sections returns the sections of the summary of a fleet.
func (f *Fleet) sections() []section {
	return []section{f.replicasSection(), f.outliersSection(), f.histogramsSection(), f.missingSection()}
}

// summary returns how many engines there are, their names, and how many are connected.
func (f *Fleet) summary(kinds string) string {
	words := metric.Plural(len(f.Replicas), "engine")
	if kinds != "" {
		words += " (" + kinds + ")"
	}
	return fmt.Sprintf("%s, %d connected", words, f.Connected)
}

// replicasSection returns the table of replicas, with medians and sums below.
func (f *Fleet) replicasSection() section {
	s := section{title: "Replicas, latencies of the whole session", left: 3, header: []string{"replica", "state", "model"}}
	for field := range fleet.NumFields {
		if field.Unit() != metric.Word {
			s.header = append(s.header, field.Title())
		}
	}
	for i := range f.Replicas[:min(len(f.Replicas), replicasListed)] {
		r := &f.Replicas[i]
		model := "-"
		if r.Model != nil {
			model = *r.Model
		}
		s.rows = append(s.rows, append([]string{r.Name, r.State, model}, fleetCells(r.Numbers)...))
		s.words = append(s.words, f.connectionNotes(r)...)
	}
	if n := len(f.Replicas); n > replicasListed {
		s.words = append(s.words, fmt.Sprintf("The first %d of %d.", replicasListed, n))
	}
	s.rows = append(s.rows, append([]string{"median", "", ""}, fleetCells(f.Medians)...), append([]string{"sum", "", ""}, fleetCells(f.Sums)...))
	return s
}

// connectionNotes returns sentences about a replica that was not always connected.
func (*Fleet) connectionNotes(r *Replica) (lines []string) {
	for _, words := range r.Report.Engine.Connection.notes() {
		lines = append(lines, r.Name+": "+words)
	}
	return lines
}

// fleetCells formats the numbers of a row, "-" for absent ones.
func fleetCells(numbers []FleetNumber) (cells []string) {
	for field := range fleet.NumFields {
		if field.Unit() == metric.Word {
			continue
		}
		words := "-"
		for _, n := range numbers {
			if n.Name == field.JSON() {
				_, write := metric.Named(n.Name)
				words = bounded(write(n.Value.V), n.Bound)
			}
		}
		cells = append(cells, words)
	}
	return cells
}

// outliersSection lists numbers of replicas that are far from the median.
func (f *Fleet) outliersSection() section {
	s := section{title: "Outliers", left: 2, header: []string{"replica", "number", "value", "median", ""}}
	for i := range f.Outliers {
		o := &f.Outliers[i]
		_, write := metric.Named(o.Name)
		s.rows = append(s.rows, []string{o.Replica, fieldTitle(o.Name), bounded(write(o.Value.V), o.Bound), write(o.Median.V), o.ratioText()})
	}
	for i := range f.Differ {
		d := &f.Differ[i]
		_, write := metric.Named(d.Name)
		s.words = append(s.words, fmt.Sprintf("No single outlier, but replicas differ: %s %s (%s) to %s (%s).",
			fieldTitle(d.Name), write(d.LowValue.V), d.Lowest, write(d.HighValue.V), d.Highest))
	}
	switch {
	case len(s.rows)+len(s.words) > 0 || len(f.Replicas) == 0:
	case f.hasCommon():
		s.words = []string{"No replica is far from the median of its model."}
	default:
		s.words = []string{"Nothing to compare: no two connected replicas of a model report the same number."}
	}
	return s
}

// hasCommon reports whether two replicas of a model report the same number.
func (f *Fleet) hasCommon() bool {
	seen := make(map[[2]string]bool)
	for i := range f.Replicas {
		r := &f.Replicas[i]
		model := ""
		if r.Model != nil {
			model = *r.Model
		}
		for _, n := range r.Numbers {
			if key := [2]string{model, n.Name}; n.Name != fleet.Age.JSON() && seen[key] {
				return true
			} else {
				seen[key] = true
			}
		}
	}
	return false
}

// ratioText compares a number with the median.
func (o *Outlier) ratioText() string {
	switch {
	case !o.Times.OK():
		return "the median is 0"
	case o.Times.V < 0.1:
		return "less than 0.1 times the median"
	}
	return fmt.Sprintf("%.1f times the median", o.Times.V)
}

// fieldTitle returns the name of a number in sentences.
func fieldTitle(name string) string {
	for f := range fleet.NumFields {
		for _, o := range [...]fleet.Outlier{{Field: f}, {Field: f, Mean: true}} {
			if o.JSON() == name {
				return o.Words()
			}
		}
	}
	return name
}

// histogramsSection returns the histograms of the replicas that report some.
func (f *Fleet) histogramsSection() section {
	s := section{title: "Latency reported by the servers, whole session", left: 2, header: append([]string{"replica", ""}, countedHeader...)}
	for i := range f.Replicas[:min(len(f.Replicas), listed)] {
		r := &f.Replicas[i]
		for _, l := range r.Report.Reported.Latencies {
			s.rows = append(s.rows, append([]string{r.Name, l.title()}, l.countedCells()...))
		}
	}
	if len(s.rows) > 0 {
		s.words = []string{countedNote}
	}
	if n := len(f.Replicas); n > listed {
		s.words = append(s.words, fmt.Sprintf("The first %d of %d replicas.", listed, n))
	}
	return s
}

// missingSection lists the numbers that the servers do not report.
func (f *Fleet) missingSection() section {
	s := section{title: "Not reported by the servers", left: 2, header: []string{"replica", ""}}
	for i := range f.Replicas[:min(len(f.Replicas), listed)] {
		r := &f.Replicas[i]
		t := &r.Report.Reported
		if len(t.Missing) > 0 {
			s.rows = append(s.rows, []string{r.Name, strings.Join(t.Missing, ", ")})
		}
		if len(t.NotRead) > 0 {
			s.rows = append(s.rows, []string{r.Name, "not read: " + notRead(t.NotRead)})
		}
	}
	return s
}

// describe returns the header rows of a fleet.
func (f *Fleet) describe(r *Report) [][]string {
	requests, tokens := r.Totals.describe()
	return [][]string{
		{"engines", f.summary(r.Engine.Name)},
		{"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		{"requests", requests},
		{"tokens", tokens + ", in " + format(r.Totals.time(), metric.Seconds)},
		{"TTPS", perSecond(r.Totals.TTPS) + perToken(r.Totals.TTPS)},
	}
}
