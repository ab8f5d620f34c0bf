package exposition

import (
	flags "flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

var update = flags.Bool("update", false, "update the tables of docs/metrics.md")

const reference = "../../docs/metrics.md"

// byHand is a cell that docs/metrics.md alone has: when a number is absent.
const byHand = "\x00"

// table is a table of docs/metrics.md. Its first column names the number. What follows a definition in its cell is written
// by hand.
type table struct {
	header []string
	rows   [][]string
}

// TestReference checks that the tables of docs/metrics.md have the rows of the catalogue.
func TestReference(t *testing.T) {
	documented(t, "latencies", latencyTable())
	documented(t, "rates", numberTable(store.Rates))
	documented(t, "totals", numberTable(store.Totalled))
	documented(t, "machine", hostTable(event.MachineFields[:], machineMetrics))
	documented(t, "process", hostTable(event.ProcessFields[:], processMetrics))
	documented(t, "gpu", hostTable(event.GPUFields[:], gpuMetrics))
	documented(t, "usage", usageTable())
}

// TestTermsAreDefined checks that docs/metrics.md defines the terms as the help of the screen does.
func TestTermsAreDefined(t *testing.T) {
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range store.Terms {
		if cell := "| " + escaped(n.Help); !strings.Contains(string(page), cell+" |") && !strings.Contains(string(page), cell+". ") {
			t.Errorf("%s does not define %s: %s", reference, n.Title, n.Help)
		}
	}
}

// latencyTable returns a table with a row per latency.
func latencyTable() table {
	out := table{header: []string{"number", "in JSON", "definition", "absent", "in Prometheus", "in alerts"}}
	for id := range store.Latencies {
		l, alerts := &store.Latencies[id], ""
		if l.Alert != "" {
			alerts = code(l.Alert + "_p50")
		}
		out.rows = append(out.rows, []string{l.Name, code(l.JSON), l.Help, byHand, code(latencyMetrics[id].promName), alerts})
	}
	return out
}

// numberTable returns a table with a row per number of a snapshot.
func numberTable(numbers []store.Number) table {
	out := table{header: []string{"number", "in JSON", "unit", "definition", "absent", "in Prometheus", "in alerts"}}
	for _, n := range numbers {
		metric := ""
		if n.Metric != "" {
			metric = instrumentNamed(n.Metric).promName
		}
		part, name, _ := strings.Cut(n.JSON, ".")
		json := code(name) + " of " + code(part)
		if name == "" {
			json = code(part)
		}
		out.rows = append(out.rows, []string{n.Name, json, n.Unit.String(), n.Help, byHand, code(metric), code(n.Alert)})
	}
	return out
}

// hostTable returns a table with a row per field of the catalogue.
func hostTable[T any](rows []event.Field[T], metrics []*instrument) table {
	out := table{header: []string{"number", "in JSON", "unit", "definition", "in Prometheus", "in alerts", "in events"}}
	for i := range rows {
		f, metric := &rows[i], ""
		if metrics[i] != nil {
			metric = metrics[i].promName
		}
		out.rows = append(out.rows, []string{f.Name, code(f.JSON), f.Unit.String(), f.Help, code(metric), code(f.Own.Alert, f.Self.Alert), code(f.Key)})
	}
	return out
}

// usageTable returns a table with a row per reading of the evidence for causes.
func usageTable() table {
	out := table{header: []string{"number", "unit", "definition", "in events"}}
	for _, f := range event.UsageFields {
		out.rows = append(out.rows, []string{f.Name, f.Unit.String(), f.Help, code(f.Key)})
	}
	return out
}

func escaped(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// code returns names as code, without empty ones.
func code(names ...string) string {
	var out []string
	for _, name := range names {
		if name != "" {
			out = append(out, "`"+name+"`")
		}
	}
	return strings.Join(out, ", ")
}

// text returns the table with what was written by hand in an earlier version.
func (want table) text(t *testing.T, was string) string {
	before := map[string][]string{}
	for line := range strings.Lines(was) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |\n"), " | ")
		before[cells[0]] = cells
	}
	out := row(want.header) + strings.Repeat("|---", len(want.header)) + "|\n"
	for _, cells := range want.rows {
		old := before[escaped(cells[0])]
		for i, cell := range cells {
			cells[i] = escaped(cell)
			switch {
			case cell == byHand && old == nil:
				cells[i] = ""
			case cell == byHand:
				cells[i] = old[i]
			case want.header[i] == "definition" && old != nil:
				if cells[i] = old[i]; old[i] != escaped(cell) && !strings.HasPrefix(old[i], escaped(cell)+". ") {
					t.Errorf("%s: the definition of %s is now %q: write it, and what still follows it", reference, cells[0], cell)
				}
			}
		}
		out += row(cells)
	}
	return out
}

// documented compares a part of the reference with its table.
func documented(t *testing.T, part string, of table) {
	t.Helper()
	file, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s -->\n", part), fmt.Sprintf("<!-- /%s -->", part)
	before, rest, ok := strings.Cut(string(file), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table %s", reference, part)
	}
	if want := of.text(t, was); *update {
		if err := os.WriteFile(reference, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("%s does not have this (run with -update):\n%s", reference, want)
	}
}
