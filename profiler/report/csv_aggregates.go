package report

import (
	"encoding/csv"
	"io"
	"reflect"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// reportedHeader are the columns for servers with aggregate metrics: one row per number.
var reportedHeader = []string{"replica", "name", "value", "bound", "origin"}

// writeReportedCSV writes the totals and the aggregate metrics of servers, named as in JSON. Numbers that a server does
// not report have no row.
func writeReportedCSV(r *Report, out io.Writer) error {
	w := csv.NewWriter(out)
	if err := w.Write(reportedHeader); err != nil {
		return err
	}
	if r.Fleet == nil {
		return w.WriteAll(reportedRows(r, ""))
	}
	for i := range r.Fleet.Replicas {
		one := &r.Fleet.Replicas[i]
		if err := w.WriteAll(reportedRows(one.Report, one.Name)); err != nil {
			return err
		}
	}
	return nil
}

// reportedRows returns the rows of one server.
func reportedRows(r *Report, replica string) (rows [][]string) {
	row := func(name string, v float64, bound, origin string) {
		rows = append(rows, []string{textCell(replica), textCell(name), strconv.FormatFloat(v, 'g', -1, 64), textCell(bound), textCell(origin)})
	}
	t := &r.Totals
	for name, n := range numbers(reflect.ValueOf(t).Elem()) {
		if n.OK() && n != &t.Queued && n != &t.Running {
			row(name, n.V, t.bound(name), t.Origin[name])
		}
	}
	if t.FinishedSeen != nil && !t.Finished.OK() {
		row("finished", t.FinishedSeen.V, boundAbove, event.Derived.String())
	}
	for _, n := range r.Reported.Numbers {
		if n.Value.OK() {
			row(n.Name, n.Value.V, t.bound(n.Name), n.Origin.String())
		}
		if n.Max.OK() {
			row(n.Name+"_max", n.Max.V, boundWithin, n.Origin.String())
		}
	}
	for i := range r.Reported.Latencies {
		r.Reported.Latencies[i].rows(row)
	}
	return rows
}
