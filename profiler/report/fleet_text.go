package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
)

// replicasListed is how many replicas a summary lists; JSON has them all.
const replicasListed = 200

// sections are the parts of the summary of several engines.
func (f *Fleet) sections() []section {
	return []section{f.replicasSection(), f.outOfLineSection(), f.timesSection(), f.missingSection()}
}

// count says how many engines there are, and of what kinds.
func (f *Fleet) count(kinds string) string {
	words := fmt.Sprintf("%d engines", len(f.Replicas))
	if kinds != "" {
		words += " (" + kinds + ")"
	}
	return fmt.Sprintf("%s, %d connected", words, f.Connected)
}

// replicasSection is the table of replicas, with medians and sums below.
func (f *Fleet) replicasSection() section {
	s := section{title: "Replicas, latencies of the whole session", left: 3, header: []string{"replica", "state", "model"}}
	for field := range fleet.NumFields {
		if field.Kind() != fleet.Word {
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
		s.words = append(s.words, f.words(r)...)
	}
	if n := len(f.Replicas); n > replicasListed {
		s.words = append(s.words, fmt.Sprintf("The first %d of %d.", replicasListed, n))
	}
	s.rows = append(s.rows, append([]string{"median", "", ""}, fleetCells(f.Medians)...), append([]string{"sum", "", ""}, fleetCells(f.Sums)...))
	return s
}

// words are what there is to say of a replica that was not always connected.
func (*Fleet) words(r *Replica) (lines []string) {
	for _, words := range r.Report.Engine.Connection.words() {
		lines = append(lines, r.Name+": "+words)
	}
	return lines
}

// fleetCells are the numbers of a row as text, "-" where there is none.
func fleetCells(numbers []FleetNumber) (cells []string) {
	for field := range fleet.NumFields {
		if field.Kind() == fleet.Word {
			continue
		}
		words := "-"
		for _, n := range numbers {
			if n.Name == field.JSON() {
				words = bounded(form(n.Name)(n.Value.V), n.Bound)
			}
		}
		cells = append(cells, words)
	}
	return cells
}

// outOfLineSection names the replicas that are far from the others.
func (f *Fleet) outOfLineSection() section {
	s := section{title: "Replicas out of line", left: 2, header: []string{"replica", "number", "value", "median", ""}}
	for i := range f.OutOfLine {
		o := &f.OutOfLine[i]
		write := form(o.Name)
		s.rows = append(s.rows, []string{o.Replica, fieldWords(o.Name), bounded(write(o.Value.V), o.Bound), write(o.Median.V), o.times()})
	}
	if len(s.rows) == 0 && len(f.Replicas) > 0 {
		s.words = []string{"No replica is far from the median of its model."}
	}
	return s
}

// times says how a number stands to the median.
func (o *OutOfLine) times() string {
	switch {
	case !o.Times.OK():
		return "the median has none"
	case o.Times.V < 0.1:
		return "under 0.1 times the median"
	}
	return fmt.Sprintf("%.1f times the median", o.Times.V)
}

// fieldWords are what a number of replicas is called in a sentence.
func fieldWords(name string) string {
	for f := range fleet.NumFields {
		if f.JSON() == name {
			return f.Words()
		}
	}
	return name
}

// timesSection are the histograms of the replicas that tell some.
func (f *Fleet) timesSection() section {
	s := section{title: "Times as the servers count them, whole session", left: 2, header: append([]string{"replica", ""}, timesHeader...)}
	for i := range f.Replicas[:min(len(f.Replicas), listed)] {
		r := &f.Replicas[i]
		if r.Report.Reported == nil {
			continue
		}
		for j := range r.Report.Reported.Times {
			t := &r.Report.Reported.Times[j]
			s.rows = append(s.rows, append([]string{r.Name, t.Name}, t.cells()...))
		}
	}
	if len(s.rows) > 0 {
		s.words = []string{timesWords}
	}
	if n := len(f.Replicas); n > listed {
		s.words = append(s.words, fmt.Sprintf("The first %d of %d replicas.", listed, n))
	}
	return s
}

// missingSection is what the servers do not tell.
func (f *Fleet) missingSection() section {
	s := section{title: "What the servers do not tell", left: 2, header: []string{"replica", ""}}
	for i := range f.Replicas[:min(len(f.Replicas), listed)] {
		r := &f.Replicas[i]
		if t := r.Report.Reported; t != nil && len(t.Missing) > 0 {
			s.rows = append(s.rows, []string{r.Name, strings.Join(t.Missing, ", ")})
		}
	}
	return s
}

// describe is what is known of several engines, in rows.
func (f *Fleet) describe(r *Report) [][]string {
	requests, tokens := r.Totals.words()
	return [][]string{
		{"engines", f.count(r.Engine.Name)},
		{"started", r.Started.Format("2006-01-02 15:04:05 MST")},
		{"requests", requests},
		{"tokens", tokens + ", in " + format(r.Totals.Duration, metric.Seconds)},
		{"TTPS", perSecond(r.Totals.TTPS) + perToken(r.Totals.TTPS)},
	}
}
