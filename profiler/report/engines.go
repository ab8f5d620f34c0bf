package report

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// Engines is the document of several engines that were watched together: each with its name and a report of its own.
type Engines struct {
	SchemaVersion int               `json:"schema_version"`
	Version       string            `json:"version"`
	Partial       bool              `json:"partial"` // the run was interrupted
	Configuration map[string]string `json:"configuration"`
	Engines       []Named           `json:"engines"`
}

// Named is one engine of several.
type Named struct {
	Name    string  `json:"name"` // for example its address
	Link    *Link   `json:"connection"`
	Report  *Report `json:"report"`
	replica *fleet.Replica
}

// Link is how the connection to an engine elsewhere stands at the end of the session.
type Link struct {
	State string    `json:"state"` // connected, stale, disconnected or refused
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"`
}

// NewEngines begins a document of several engines.
func NewEngines(meta Meta) *Engines {
	return &Engines{
		SchemaVersion: SchemaVersion, Version: meta.Version, Partial: meta.Partial, Configuration: meta.Configuration, Engines: []Named{},
	}
}

// Add adds an engine, with the snapshot that its report was made of.
func (e *Engines) Add(name string, s *store.Snapshot, r *Report) {
	n := Named{Name: name, Report: r, replica: &fleet.Replica{Name: name, Model: s.Model.Name, State: s.Engine.State.String()}}
	if at := &s.Engine.Remote; at.Link != event.LinkNone {
		n.Link = &Link{State: at.Link.String(), Since: s.Wall.Add(-time.Duration(s.Now - at.Since)).UTC().Truncate(time.Millisecond), Why: at.Why}
		if n.replica.Broken = at.Link != event.LinkConnected; n.replica.Broken {
			n.replica.State = at.Link.String() + " since " + s.Wall.Add(-time.Duration(s.Now-at.Since)).Format(time.TimeOnly)
		}
	}
	n.replica.Measure(s, metric.Session)
	e.Engines = append(e.Engines, n)
}

// Named finds an engine by its name, or by a part of it that no other has; nil if there is none.
func (e *Engines) Named(name string) *Report {
	var found *Report
	for i := range e.Engines {
		switch n := &e.Engines[i]; {
		case n.Name == name:
			return n.Report
		case !strings.Contains(n.Name, name):
		case found != nil:
			return nil
		default:
			found = n.Report
		}
	}
	return found
}

// WriteJSON writes the document, laid out like that of one engine.
func (e *Engines) WriteJSON(w io.Writer) error { return writeDocument(w, e) }

// WriteText writes a table with a row for each engine, their medians, and which of them are far from these.
func (e *Engines) WriteText(out io.Writer) error {
	w := writer{bufio.NewWriter(out)}
	w.line("llmtop %s - %d engines; latencies over the session, n/r not reported", e.Version, len(e.Engines))
	w.WriteString("\n")
	all := make([]*fleet.Replica, len(e.Engines))
	for i := range e.Engines {
		all[i] = e.Engines[i].replica
	}
	e.table(w, all)
	if far := fleet.Outliers(all); len(far) > 0 {
		w.title("far from the median")
		for i := range far {
			o := &far[i]
			w.line("  %s: %s %s against %s", o.Replica.Name, o.Field.Words(), cell(o.Field, o.Value), cell(o.Field, fleet.Cell{Reading: event.From(o.Median)}))
		}
	}
	for i := range e.Engines {
		if n := &e.Engines[i]; n.replica.Broken && n.Link.Why != "" {
			w.title("%s is %s: %s", n.Name, n.replica.State, n.Link.Why)
		}
	}
	return w.Flush() // the first error sticks
}

// table writes the rows of the engines and their medians.
func (e *Engines) table(w writer, all []*fleet.Replica) {
	var lines bytes.Buffer
	tab := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	row := func(first string, cells func(f fleet.Field) string) {
		fmt.Fprint(tab, plain(first))
		for f := fleet.State; f < fleet.NumFields; f++ {
			fmt.Fprint(tab, "\t", plain(cells(f)))
		}
		fmt.Fprintln(tab)
	}
	row("engine", fleet.Field.Title)
	for _, r := range all {
		row(r.Name, func(f fleet.Field) string {
			if f.Kind() == fleet.Word {
				return r.Word(f)
			}
			return cell(f, r.Cells[f])
		})
	}
	row("median", func(f fleet.Field) string {
		if f.Kind() == fleet.Word {
			return ""
		}
		return cell(f, fleet.Median(all, f))
	})
	_ = tab.Flush() // into memory
	for line := range strings.Lines(lines.String()) {
		w.line("%s", strings.TrimRight(line, "\n"))
	}
}

// cell writes a number of an engine.
func cell(f fleet.Field, v fleet.Cell) string {
	switch {
	case v.Origin == event.NotReported:
		return "n/r"
	case !v.OK():
		return "-"
	}
	return f.Format(v)
}
